//! The web page builds nothing from text and loads nothing from elsewhere.
//!
//! Browsers hold the same by the page's `Content-Security-Policy`, but only when a page is opened; names
//! of queues and bodies of messages are chosen by clients. Third-party code is not checked.

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::tree::Tree;

/// Folder of the page.
const FOLDER: &str = "crates/management/web/";

/// Text that no module, document or style sheet may have, and what to do instead.
const FORBIDDEN: &[(&str, &str)] = &[
    ("innerHTML", "a template escapes text, this does not"),
    ("outerHTML", "a template escapes text, this does not"),
    ("insertAdjacentHTML", "a template escapes text, this does not"),
    ("document.write", "a template escapes text, this does not"),
    ("dangerouslySetInnerHTML", "a template escapes text, this does not"),
    ("eval(", "text is not run"),
    ("new Function(", "text is not run"),
    ("javascript:", "text is not run"),
    ("http://", "the page needs nothing but its broker"),
    ("https://", "the page needs nothing but its broker"),
    ("@import", "list style sheets in index.html"),
    (" style=\"", "use a class, or an object"),
    ("<style", "use a file in css"),
    ("<script>", "use a file in js"),
];

/// Checks every file of the page that a browser runs.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_run = |extension: &&str| matches!(*extension, "js" | "css" | "html");
    for (file, text) in tree.texts() {
        let extension = file.path.rsplit_once('.').map(|(_, extension)| extension);
        if !file.path.starts_with(FOLDER) || extension.filter(is_run).is_none() {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            for (word, reason) in FORBIDDEN.iter().filter(|(word, _)| line.contains(word)) {
                findings.push(Finding::at(&file.path, index + 1, format!("`{word}`: {reason}")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    fn findings(path: &str, text: &str) -> String {
        lines(&check(&Tree::of(&[(path, text)])))
    }

    #[test]
    fn text_is_neither_markup_nor_program() {
        let path = "crates/management/web/js/a.js";
        assert_eq!(
            findings(path, "a.innerHTML = name;\nb(name);\neval(name);\n"),
            "crates/management/web/js/a.js:1: `innerHTML`: a template escapes text, this does not\n\
             crates/management/web/js/a.js:3: `eval(`: text is not run\n"
        );
        assert!(findings("crates/management/web/index.html", "<script>\n").contains("<script>"));
    }

    #[test]
    fn page_loads_nothing_from_elsewhere() {
        let found = findings("crates/management/web/css/a.css", "@import \"https://a.example\";\n");
        assert_eq!(found.lines().count(), 2);
    }

    #[test]
    fn code_of_others_pictures_and_other_folders_are_free() {
        let text = "// https://a.example\n";
        assert_eq!(findings("crates/management/web/vendor/a.js", text), "");
        assert_eq!(findings("crates/management/web/img/a.svg", text), "");
        assert_eq!(findings("docs/a.js", text), "");
    }
}
