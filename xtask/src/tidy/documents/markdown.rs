//! Markdown files have one title, and their relative links lead to files and headings.
//!
//! Fenced code and inline code are not read. Links to other sites are not followed: a check that
//! needs the network fails for other people's reasons.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::tree::{Tree, TreeFile};

/// Checks every Markdown file.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let places = places(tree);
    let mut findings = Vec::new();
    for (file, text) in tree.texts().filter(|(file, _)| file.has_extension("md")) {
        let titles = prose(text).filter(|(_, line)| line.starts_with("# ")).count();
        if titles != 1 {
            let message = format!("{titles} titles (`# ...`): a document has exactly one");
            findings.push(Finding::in_file(&file.path, message));
        }
        for (number, line) in prose(text) {
            for target in targets(&line) {
                if let Some(message) = fault(file, target, tree, &places) {
                    findings.push(Finding::at(&file.path, number, message));
                }
            }
        }
    }
    findings
}

/// Every file and folder of the tree.
fn places(tree: &Tree) -> BTreeSet<&str> {
    let mut places = BTreeSet::from([""]);
    for file in &tree.files {
        places.insert(&file.path);
        places.extend(file.path.match_indices('/').map(|(at, _)| &file.path[..at]));
    }
    places
}

/// The lines outside fenced code, with their indices.
fn unfenced(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence = None;
    text.lines().enumerate().filter(move |(_, line)| {
        let line = line.trim_start();
        let marker = ["```", "~~~"].into_iter().find(|marker| line.starts_with(marker));
        match (fence, marker) {
            (None, Some(_)) => fence = marker,
            (Some(open), Some(marker)) if open == marker => fence = None,
            (None, None) => return true,
            (Some(_), _) => {}
        }
        false
    })
}

/// The lines outside code with their numbers, inline code blanked.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    unfenced(text).map(|(index, line)| {
        let parts = line.split('`').enumerate();
        (index + 1, parts.map(|(part, text)| if part % 2 == 0 { text } else { "" }).collect())
    })
}

/// Targets of the links, images and link definitions of a line.
fn targets(line: &str) -> Vec<&str> {
    let mut targets: Vec<&str> = line
        .match_indices("](")
        .map(|(at, _)| line[at + 2..].split(')').next().unwrap_or(""))
        .collect();
    if let Some((label, target)) = line.split_once("]: ")
        && label.starts_with('[')
        && !label.starts_with("[^")
    {
        targets.push(target);
    }
    let without_title = |target: &&str| !target.is_empty();
    targets
        .iter()
        .filter_map(|target| target.split_whitespace().next())
        .map(|target| target.trim_matches(['<', '>']))
        .filter(without_title)
        .collect()
}

fn fault(file: &TreeFile, target: &str, tree: &Tree, places: &BTreeSet<&str>) -> Option<String> {
    let path = target.split(['#', '?']).next()?;
    if has_scheme(path) {
        return None;
    }
    if path.starts_with('/') {
        return Some(format!("link to `{target}`: begin at the folder of this file"));
    }
    let place = match path {
        "" => file.path.clone(),
        path => match resolved(&file.path, path) {
            Some(place) => place,
            None => return Some(format!("link to `{target}`: leads out of the repository")),
        },
    };
    if !places.contains(place.as_str()) {
        return Some(format!("link to `{target}`: there is no such file"));
    }
    let (_, heading) = target.split_once('#')?;
    let text = tree.text(&place).filter(|_| place.ends_with(".md"))?;
    let is_there = anchors(text).iter().any(|anchor| anchor == heading);
    (!is_there).then(|| format!("link to `{target}`: there is no such heading"))
}

/// The path that a link in `file` leads to; none if it leads out of the repository.
fn resolved(file: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The anchors of a file's headings, as GitHub makes them: lower case, hyphens for spaces, no
/// punctuation, and a number behind repeated ones.
fn anchors(text: &str) -> Vec<String> {
    let mut counts = BTreeMap::new();
    let headings = unfenced(text).filter_map(|(_, line)| {
        line.starts_with('#').then(|| line.trim_start_matches('#')).filter(|it| it.starts_with(' '))
    });
    let mut anchors = Vec::new();
    for heading in headings {
        let kept = heading.trim().chars().filter_map(|letter| match letter {
            ' ' => Some('-'),
            letter if letter.is_alphanumeric() || "-_".contains(letter) => Some(letter),
            _ => None,
        });
        let anchor: String = kept.flat_map(char::to_lowercase).collect();
        let count = counts.entry(anchor.clone()).or_insert(0_usize);
        anchors.push(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    anchors
}

/// True if the target is a full address, as in `https:` and `mailto:`.
fn has_scheme(target: &str) -> bool {
    let scheme = target.split_once(':').map_or("", |(scheme, _)| scheme);
    !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    fn findings(text: &str) -> String {
        lines(&check(&Tree::of(&[("docs/a.md", text), ("docs/b c.txt", ""), ("README.md", "# R")])))
    }

    #[test]
    fn document_has_exactly_one_title() {
        assert_eq!(findings("# A\n## B\n```sh\n# no title\n```\n"), "");
        let message = "titles (`# ...`): a document has exactly one";
        assert_eq!(findings("# A\n# B\n"), format!("docs/a.md:1: 2 {message}\n"));
        assert_eq!(findings("## A\n"), format!("docs/a.md:1: 0 {message}\n"));
    }

    #[test]
    fn relative_links_lead_to_files() {
        let good = "[r](../README.md#r) ![i](../docs) [h](#a) [w](https://b.c/d) [m](mailto:a@b.c)";
        assert_eq!(findings(&format!("# A\n{good}\n[d]: ../README.md \"title\"\n")), "");
        assert_eq!(
            findings("# A\n[x](x.md), [r](../README.md), [y](../../y)\n[z]: /README.md\n"),
            "docs/a.md:2: link to `x.md`: there is no such file\n\
             docs/a.md:2: link to `../../y`: leads out of the repository\n\
             docs/a.md:3: link to `/README.md`: begin at the folder of this file\n"
        );
    }

    #[test]
    fn links_to_headings_lead_to_headings() {
        let text = "# A\n## Two `words`, or more\n## B\n## B\n";
        let good = "[a](#a) [t](#two-words-or-more) [b](#b-1) [r](../README.md#r)";
        assert_eq!(findings(&format!("{text}{good}\n")), "");
        assert_eq!(
            findings(&format!("{text}[c](#c), [b](#b-2)\n[r](../README.md#a)\n")),
            "docs/a.md:5: link to `#c`: there is no such heading\n\
             docs/a.md:5: link to `#b-2`: there is no such heading\n\
             docs/a.md:6: link to `../README.md#a`: there is no such heading\n"
        );
    }

    #[test]
    fn code_holds_no_links() {
        assert_eq!(findings("# A\n`a[b](c)`\n~~~\n[x](y)\n```\n[x](y)\n~~~\n"), "");
    }
}
