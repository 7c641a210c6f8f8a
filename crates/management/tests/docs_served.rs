//! The documentation that the broker serves: its links, and those of the page's help, lead to what is served.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

/// Path and content of every page and drawing.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/docs.rs"));

/// The anchors of each page, by its path.
fn anchors() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let of =
        |text: &'static str| text.split(" id=\"").skip(1).filter_map(|it| it.split('"').next());
    PAGES.iter().map(|(path, text)| (*path, of(text).collect())).collect()
}

/// The path that a relative link leads to.
fn resolved(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => assert!(parts.pop().is_some(), "{from}: {link}"),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn links_of_the_served_documentation_lead_to_served_pages_and_anchors() {
    let anchors = anchors();
    let mut links = 0;
    for (from, text) in PAGES.iter().filter(|(path, _)| path.ends_with(".html")) {
        let (_, body) = text.split_once("<main>").unwrap();
        for link in body.split(" href=\"").skip(1).filter_map(|it| it.split('"').next()) {
            if link.contains("://") {
                continue;
            }
            links += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let to = if path.is_empty() { (*from).to_owned() } else { resolved(from, path) };
            let there = anchors.get(to.as_str()).unwrap_or_else(|| panic!("{from}: {link}"));
            assert!(anchor.is_empty() || there.contains(anchor), "{from}: {link}");
        }
    }
    assert!(links > 400, "{links}");
}

#[test]
fn help_texts_of_the_page_link_to_served_pages_and_anchors() {
    let anchors = anchors();
    let texts = include_str!("../web/js/help-texts.js");
    let mut links = 0;
    for link in texts.split("docs: \"").skip(1).filter_map(|it| it.split('"').next()) {
        links += 1;
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let there = anchors.get(format!("docs/{path}.html").as_str());
        let there = there.unwrap_or_else(|| panic!("{link}"));
        assert!(anchor.is_empty() || there.contains(anchor), "{link}");
    }
    assert!(links > 40, "{links}");
}

#[test]
fn findings_link_to_served_pages_and_anchors() {
    let anchors = anchors();
    let kinds = include_str!("../src/findings/kind.rs");
    let mut links = 0;
    for link in kinds.split('"').skip(1).step_by(2).filter(|text| text.contains(".md")) {
        links += 1;
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let there = anchors.get(format!("docs/{}", path.replace(".md", ".html")).as_str());
        let there = there.unwrap_or_else(|| panic!("{link}"));
        assert!(anchor.is_empty() || there.contains(anchor), "{link}");
    }
    assert!(links > 10, "{links}");
}

#[test]
fn documentation_loads_nothing_from_elsewhere() {
    for (path, text) in PAGES.iter().filter(|(path, _)| path.ends_with(".html")) {
        for source in text.split(" src=\"").skip(1) {
            assert!(!source.starts_with("http"), "{path}");
        }
        assert_eq!(text.matches("<script").count(), 1, "{path}");
    }
}
