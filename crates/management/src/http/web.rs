//! The web page: files that are compiled into the program.
//!
//! They need no login, because they contain only what the source contains. The page asks the API for
//! everything else. A debug build reads the files from disk for each request.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rust_embed::RustEmbed;

use crate::http::answer::ApiError;

/// The files of the folder `web`.
#[derive(RustEmbed)]
#[folder = "web/"]
struct Files;

/// The first file of the page.
const INDEX: &str = "index.html";

/// Identifies the files of this process together: the bytes of all their hashes, combined. It is part of the tag of the
/// first file, by which a browser knows whether it runs this page or another version's.
static VERSION: LazyLock<[u8; 32]> = LazyLock::new(|| {
    let hashes =
        Files::iter().filter_map(|name| Files::get(&name)).map(|file| file.metadata.sha256_hash());
    hashes.fold([0; 32], combined)
});

/// The icon, also under its traditional name.
const ICON: &str = "img/leveret.svg";

/// The paths of the page, equal for a running and a stopped node.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let mut routes = Router::new()
        .route("/", get(|headers: HeaderMap| async move { answer(INDEX, &headers) }))
        .route("/favicon.ico", get(|headers: HeaderMap| async move { answer(ICON, &headers) }));
    for folder in ["css", "img", "js", "vendor"] {
        let file = move |Path(name): Path<String>, headers: HeaderMap| async move {
            answer(&format!("{folder}/{name}"), &headers)
        };
        routes = routes.route(&format!("/{folder}/{{*name}}"), get(file));
    }
    routes
}

/// Answers with a file, or with 304 if the client has it.
fn answer(name: &str, headers: &HeaderMap) -> Response {
    let Some(file) = is_plain(name).then(|| Files::get(name)).flatten() else {
        return ApiError::not_found().into_response();
    };
    let own = file.metadata.sha256_hash();
    let hash = if name == INDEX { combined(*VERSION, own) } else { own };
    let tag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(hash));
    // The browser may cache a file, but revalidates it for each request: another version of the program may
    // serve another page at the same address.
    let cached = [(ETAG, tag.as_str()), (CACHE_CONTROL, "no-cache")];
    if is_known(headers, &tag) {
        return (StatusCode::NOT_MODIFIED, cached).into_response();
    }
    (cached, [(CONTENT_TYPE, content_type(name))], file.data).into_response()
}

/// Two hashes in one; the order matters.
fn combined(first: [u8; 32], second: [u8; 32]) -> [u8; 32] {
    std::array::from_fn(|at| {
        let before = first.get((at + 1) % 32).copied().unwrap_or_default();
        before.rotate_left(3) ^ second.get(at).copied().unwrap_or_default()
    })
}

/// True if a name stays inside the folder on every system, and names no hidden file.
fn is_plain(name: &str) -> bool {
    name.split('/').all(|part| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        !part.is_empty() && !part.starts_with('.') && part.chars().all(is_plain)
    })
}

/// True if the client has the file with this tag.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let sent = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = sent.flat_map(|list| list.split(',')).map(str::trim);
    tags.any(|sent| sent == "*" || sent.strip_prefix("W/").unwrap_or(sent) == tag)
}

/// The content type by the extension of a file name. Browsers are told not to guess.
fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;

    use super::*;

    /// Status, content type, tag and body of an answer.
    fn get_file(name: &str, known: Option<&str>) -> (u16, String, String, Bytes) {
        let mut headers = HeaderMap::new();
        if let Some(tag) = known {
            headers.insert(IF_NONE_MATCH, tag.parse().unwrap());
        }
        let response = answer(name, &headers);
        let header = |name| {
            let value = response.headers().get(name);
            value.map_or(String::new(), |value| value.to_str().unwrap().to_owned())
        };
        let (status, kind, tag) = (response.status().as_u16(), header(CONTENT_TYPE), header(ETAG));
        let mut body = Box::pin(axum::body::to_bytes(response.into_body(), usize::MAX));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let std::task::Poll::Ready(Ok(body)) = body.as_mut().poll(&mut context) else {
            panic!("a file is there at once")
        };
        (status, kind, tag, body)
    }

    #[test]
    fn web_files_have_their_content_type() {
        let kind = |name| {
            let (status, kind, _, body) = get_file(name, None);
            assert_eq!((status, body.is_empty()), (200, false), "{name}");
            kind
        };
        assert_eq!(kind("index.html"), "text/html; charset=utf-8");
        assert_eq!(kind("js/main.js"), "text/javascript; charset=utf-8");
        assert_eq!(kind("css/tokens.css"), "text/css; charset=utf-8");
        assert_eq!(kind(ICON), "image/svg+xml");
        assert_eq!(kind("vendor/README.md"), "text/plain; charset=utf-8");
    }

    #[test]
    fn vendored_files_match_the_documented_checksums() {
        let Some(readme) = Files::get("vendor/README.md") else { panic!("there is none") };
        let readme = std::str::from_utf8(&readme.data).unwrap();
        let is_code = |name: &str| name.ends_with(".js") || name.ends_with(".css");
        let names: Vec<String> = Files::iter().map(String::from).collect();
        let names = names.iter().filter_map(|name| name.strip_prefix("vendor/"));
        let names: Vec<&str> = names.filter(|name| is_code(name)).collect();
        assert!(names.contains(&"htm-preact.js"));
        for name in names {
            let file = Files::get(&format!("vendor/{name}")).unwrap();
            let digest = file.metadata.sha256_hash();
            let sum: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(readme.contains(&format!("| `{sum}` | `{name}` |")), "{name} is {sum}");
        }
    }

    #[test]
    fn web_file_with_known_tag_is_not_sent_again() {
        let (_, _, tag, _) = get_file(INDEX, None);
        for known in [tag.clone(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".to_owned()]
        {
            let (status, _, again, body) = get_file(INDEX, Some(&known));
            assert_eq!((status, again.as_str(), body.len()), (304, tag.as_str(), 0), "{known}");
        }
        assert_eq!(get_file(INDEX, Some("\"other\"")).0, 200);
        assert_ne!(get_file("js/main.js", None).2, tag);
    }

    #[test]
    fn tag_of_the_first_file_depends_on_all_files() {
        let own = Files::get(INDEX).map(|file| file.metadata.sha256_hash()).unwrap();
        assert_ne!(get_file(INDEX, None).2, format!("\"{}\"", URL_SAFE_NO_PAD.encode(own)));
        let (a, b) = ([1; 32], [2; 32]);
        assert_ne!(combined(a, b), combined(b, a));
        assert_ne!(combined(combined([0; 32], a), b), combined(combined([0; 32], b), b));
    }

    #[test]
    fn web_serves_no_other_paths() {
        let names = ["js/nothing.js", "js", "", "js//main.js", "/etc/passwd", "js/.hidden"];
        let ways_out = ["js/../index.html", "js/../../Cargo.toml", "js/..\\main.js", "js/%2e%2e/a"];
        for name in names.into_iter().chain(ways_out) {
            let (status, kind, _, _) = get_file(name, None);
            assert_eq!((status, kind.as_str()), (404, "application/json"), "{name}");
        }
    }
}
