//! Renders the documentation as HTML files for the broker to serve.
//!
//! Links between pages stay relative, so that the pages work under any prefix. A link out of the documentation
//! becomes text, because the broker does not serve its target. Photographs are left out for their size.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// The page of the endpoints, which the broker serves as `/api/index.html` as well.
const ENDPOINTS: &str = "reference/http-api-endpoints.md";

/// Files outside the folder of the documentation that its pages link to.
const FURTHER: [&str; 2] = ["COMPATIBILITY.md", "CHANGELOG.md"];

/// Files and folders that the pages are made of.
pub(super) const SOURCES: [&str; 3] = ["docs", "COMPATIBILITY.md", "CHANGELOG.md"];

/// Renders every page below `root/docs` into `out` and writes `out/docs.rs`, a list of paths and contents.
pub(super) fn render(root: &Path, out: &Path) -> io::Result<()> {
    let mut sources: BTreeMap<String, PathBuf> = BTreeMap::new();
    collect(&root.join("docs"), "", &mut sources)?;
    sources.extend(FURTHER.map(|name| (name.to_owned(), root.join(name))));
    let mut files = BTreeMap::new();
    for (name, path) in &sources {
        if name.ends_with(".md") {
            let text = fs::read_to_string(path)?;
            let served = served_name(name);
            files.insert(format!("docs/{served}"), page(&text, name, &sources, "docs/"));
            if name == ENDPOINTS {
                files.insert("api/index.html".to_owned(), page(&text, name, &sources, "api/"));
            }
        } else {
            files.insert(format!("docs/{name}"), fs::read_to_string(path)?);
        }
    }
    let mut list = String::from("&[\n");
    for (at, (name, text)) in files.iter().enumerate() {
        let file = out.join(format!("docs-{at}"));
        fs::write(&file, text)?;
        list.push_str(&format!(
            "    ({name:?}, include_str!({:?})),\n",
            file.display().to_string()
        ));
    }
    list.push_str("]\n");
    fs::write(out.join("docs.rs"), list)
}

/// Finds the pages and drawings of a folder, by their paths below the documentation.
fn collect(folder: &Path, at: &str, found: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let name = format!("{at}{name}");
        if path.is_dir() {
            collect(&path, &format!("{name}/"), found)?;
        } else if name.ends_with(".md") || name.ends_with(".svg") {
            found.insert(name, path);
        }
    }
    Ok(())
}

/// The name under which a page is served: `README.md` is `index.html`.
fn served_name(name: &str) -> String {
    match name.strip_suffix(".md") {
        Some("README") => "index.html".to_owned(),
        Some(stem) => format!("{stem}.html"),
        None => name.to_owned(),
    }
}

/// A whole page: `name` is its source below the documentation, `base` the folder from which it is served.
fn page(text: &str, name: &str, sources: &BTreeMap<String, PathBuf>, base: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let is_elsewhere = base != "docs/";
    let depth = if is_elsewhere { 1 } else { 1 + name.matches('/').count() };
    let up = "../".repeat(depth);
    let mut title = String::new();
    let mut events: Vec<Event<'_>> = Vec::new();
    let mut anchors: BTreeMap<String, usize> = BTreeMap::new();
    let mut heading: Option<usize> = None;
    let mut words = String::new();
    let mut kept_links = Vec::new();
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Start(Tag::Heading { .. }) => {
                heading = Some(events.len());
                words.clear();
                events.push(event);
            }
            Event::End(TagEnd::Heading(_)) => {
                if title.is_empty() {
                    title.clone_from(&words);
                }
                let anchor = unique(&words, &mut anchors);
                let start = heading.take().and_then(|at| events.get_mut(at));
                if let Some(Event::Start(Tag::Heading { id, .. })) = start {
                    *id = Some(anchor.into());
                }
                events.push(event);
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let target = link(&dest_url, name, sources, is_elsewhere.then_some(&*up));
                kept_links.push(target.is_some());
                if let Some(target) = target {
                    let dest_url = CowStr::from(target);
                    events.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                }
            }
            Event::End(TagEnd::Link) => {
                if kept_links.pop() == Some(true) {
                    events.push(event);
                }
            }
            Event::Start(Tag::Image { dest_url, .. }) if !dest_url.ends_with(".svg") => {
                events.push(Event::Start(Tag::Emphasis));
            }
            Event::End(TagEnd::Image) if !is_open_image(&events) => {
                events.push(Event::End(TagEnd::Emphasis));
            }
            Event::Html(text) | Event::InlineHtml(text) => events.push(Event::Text(text)),
            Event::Text(ref text) | Event::Code(ref text) => {
                words.push_str(text);
                events.push(event);
            }
            Event::Start(_)
            | Event::End(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_)
            | Event::SoftBreak
            | Event::HardBreak
            | Event::Rule
            | Event::TaskListMarker(_) => events.push(event),
        }
    }
    let mut body = String::new();
    html::push_html(&mut body, events.into_iter());
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} \u{b7} Leveret</title>\n<link rel=\"icon\" href=\"{up}img/leveret.svg\">\n\
         <link rel=\"stylesheet\" href=\"{up}css/tokens.css\">\n\
         <link rel=\"stylesheet\" href=\"{up}css/docs.css\">\n<script src=\"{up}js/theme.js\"></script>\n\
         </head>\n<body>\n<header><nav aria-label=\"Leveret\"><a href=\"{up}\">Leveret</a>\n\
         <a href=\"{up}docs/index.html\">Documentation</a>\n\
         <a href=\"{up}api/index.html\">HTTP API</a></nav></header>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// True if the last image of the events is not closed yet.
fn is_open_image(events: &[Event<'_>]) -> bool {
    let ends = events.iter().rev();
    let mut ends = ends.filter(|event| {
        matches!(
            event,
            Event::Start(Tag::Image { .. } | Tag::Emphasis)
                | Event::End(TagEnd::Image | TagEnd::Emphasis)
        )
    });
    matches!(ends.next(), Some(Event::Start(Tag::Image { .. })))
}

/// The target of a link on a served page; none if the broker does not serve it. `elsewhere` leads from a page
/// outside the folder of the documentation to the root.
fn link(
    target: &str,
    from: &str,
    sources: &BTreeMap<String, PathBuf>,
    elsewhere: Option<&str>,
) -> Option<String> {
    if target.starts_with('#') || target.contains("://") || target.starts_with("mailto:") {
        return Some(target.to_owned());
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, format!("#{anchor}")),
        None => (target, String::new()),
    };
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    let mut is_outside = FURTHER.contains(&from);
    for part in path.split('/') {
        match part {
            "" | "." => {}
            // Files beside the folder of the documentation are served in it.
            ".." if parts.pop().is_none() => is_outside = true,
            ".." => {}
            "docs" if is_outside && parts.is_empty() => is_outside = false,
            part => parts.push(part),
        }
    }
    let name = parts.join("/");
    let is_served = sources.contains_key(&name) && is_outside == FURTHER.contains(&name.as_str());
    let name = match is_served {
        true => served_name(&name),
        // A folder of the documentation stands for its list of pages.
        false if !is_outside && name.is_empty() => "index.html".to_owned(),
        false => return None,
    };
    let up = "../".repeat(from.matches('/').count());
    Some(match elsewhere {
        Some(root) => format!("{root}docs/{name}{anchor}"),
        None => format!("{up}{name}{anchor}"),
    })
}

/// The anchor of a heading, as GitHub makes it: lower case, hyphens for spaces, no punctuation, and a number
/// behind repeated ones.
fn unique(heading: &str, counts: &mut BTreeMap<String, usize>) -> String {
    let kept = heading.trim().chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        letter if letter.is_alphanumeric() || "-_".contains(letter) => Some(letter),
        _ => None,
    });
    let anchor: String = kept.flat_map(char::to_lowercase).collect();
    let count = counts.entry(anchor.clone()).or_insert(0);
    let unique = if *count == 0 { anchor } else { format!("{anchor}-{count}") };
    *count += 1;
    unique
}
