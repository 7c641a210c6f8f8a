//! Every path of the API stands in the documentation with its methods, and no other path does.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const PAGE: &str = "../../docs/reference/http-api-endpoints.md";
const MATRIX: &str = "../../docs/reference/compatibility-matrix.md";
const METHODS: [&str; 4] = ["get", "put", "post", "delete"];

type Routes = BTreeMap<String, BTreeSet<String>>;

/// A path with the same sign for all names: `/api/queues/*/*`.
fn with_signs(path: &str) -> String {
    let is_name = |part: &str| {
        part.starts_with('{') || (part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase()))
    };
    let parts = path.split('/').map(|part| if is_name(part) { "*" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// The methods for which a text calls `get`, `put` and so on.
fn methods_in(text: &str) -> BTreeSet<String> {
    let methods = METHODS.iter().filter(|method| {
        text.match_indices(&format!("{method}("))
            .any(|(at, _)| !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
    });
    methods.map(|method| method.to_uppercase()).collect()
}

/// Adds the routes of a file, as `.route("/api/...", Scope::Here, get(...).put(...))`.
fn read_routes(text: &str, routes: &mut Routes) {
    for call in text.split(".route(").skip(1) {
        let mut depth = 1_i32;
        let end = call.char_indices().find(|(_, c)| {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth == 0
        });
        let call = &call[..end.unwrap().0];
        // Other functions of this name have no path.
        if !call.contains(['"', '&']) {
            continue;
        }
        let mut methods = methods_in(call);
        if methods.is_empty() {
            // They have a name of their own: `let methods = post(login).delete(logout)`.
            let (_, name) = call.rsplit_once(' ').unwrap();
            let (_, value) = text.split_once(&format!("let {name} = ")).unwrap();
            methods = methods_in(value.split(';').next().unwrap());
        }
        let path = call.split(',').next().unwrap_or_default();
        let literal = path.split('"').nth(1).unwrap_or_default();
        let paths = match literal {
            // The bindings between two ends, for both kinds of destinations.
            "" | "{ends}/{{key}}" => {
                let key = if literal.is_empty() { "" } else { "/{key}" };
                ["q", "e"]
                    .map(|kind| format!("/api/bindings/{{v}}/e/{{s}}/{kind}/{{d}}{key}"))
                    .to_vec()
            }
            path if path.starts_with("/api/") && path != "/api/index.html" => vec![path.to_owned()],
            _ => continue,
        };
        for path in paths {
            routes.entry(with_signs(&path)).or_default().extend(methods.iter().cloned());
        }
    }
}

fn read_folder(folder: &Path, routes: &mut Routes) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_folder(&path, routes);
        } else {
            read_routes(&fs::read_to_string(&path).unwrap(), routes);
        }
    }
}

fn documented() -> Routes {
    let text = fs::read_to_string(PAGE).unwrap();
    let mut routes = Routes::new();
    for part in text.split("\n### `").skip(1) {
        let (path, rest) = part.split_once('`').unwrap();
        let rows = rest.split("\n## ").next().unwrap().lines();
        let rows = rows.filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
        let methods = rows.filter(|word| METHODS.contains(&&*word.to_lowercase()));
        let methods: BTreeSet<String> = methods.map(str::to_owned).collect();
        assert!(!methods.is_empty(), "{path} has no method");
        let before = routes.insert(with_signs(path), methods);
        assert_eq!(before, None, "{path} stands there twice");
    }
    routes
}

#[test]
fn every_route_of_the_api_is_documented_with_its_methods() {
    let mut routes = Routes::new();
    read_folder(Path::new("src/api"), &mut routes);
    assert!(routes.len() > 100, "{}", routes.len());
    let documented = documented();
    for (path, methods) in &routes {
        assert_eq!(documented.get(path), Some(methods), "{path} in {PAGE}");
    }
    for path in documented.keys() {
        assert!(routes.contains_key(path), "{path} in {PAGE} is no route");
    }
}

#[test]
fn paths_in_the_matrix_are_documented() {
    let text = fs::read_to_string(MATRIX).unwrap();
    let (_, section) = text.split_once("\n## HTTP\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let paths: Vec<&str> =
        names.filter(|name| name.starts_with("/api/") && *name != "/api/index.html").collect();
    assert!(paths.len() > 70, "{}", paths.len());
    let documented = documented();
    for path in paths {
        assert!(documented.contains_key(&with_signs(path)), "{path} in {MATRIX}, not in {PAGE}");
    }
}
