//! A page of the documentation as a manual page.
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a manual page has no form for most parts of a page"
)]

use std::fmt::Write as _;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::release::Release;

/// The page in section 5 of the manual. The first heading and the examples before the second are left out: the
/// manual has its own title.
pub(super) fn page(name: &str, about: &str, markdown: &str, release: &Release) -> String {
    let mut page = Page::default();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        page.text,
        ".TH {} 5 \"\" \"leveret {}\"\n.SH NAME\n{} \\- {about}\n.SH DESCRIPTION",
        name.to_uppercase(),
        release.version,
        escaped(name)
    );
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        page.add(event);
    }
    page.text.push_str(".SH SEE ALSO\n\\fBleveret\\fR(1), \\fBleveretctl\\fR(1)\n");
    page.text
}

/// A page that is being written.
#[derive(Default, Debug)]
struct Page {
    text: String,
    /// The line of text that is not complete.
    line: String,
    /// The level of the heading that is open, from 1.
    heading: Option<u8>,
    /// Position in the row of a table.
    cell: usize,
    /// Column titles of the table.
    titles: Vec<String>,
    is_header: bool,
    is_literal: bool,
}

impl Page {
    fn add(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.is_literal => {
                text.lines().for_each(|line| {
                    let _ = writeln!(self.text, "{}", request_free(&escaped(line)));
                });
            }
            Event::Text(text) => self.line.push_str(&escaped(&text)),
            Event::Code(code) => {
                let _ = write!(self.line, "\\fB{}\\fR", escaped(&code));
            }
            Event::SoftBreak | Event::HardBreak => self.line.push(' '),
            Event::Html(_)
            | Event::InlineHtml(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_)
            | Event::Rule
            | Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => self.heading = Some(*level as u8),
            Tag::Paragraph => self.text.push_str(".PP\n"),
            Tag::CodeBlock(_) => {
                self.is_literal = true;
                self.text.push_str(".PP\n.RS\n.nf\n");
            }
            Tag::Item => self.text.push_str(".IP \\(bu 2\n"),
            Tag::Table(_) => self.titles.clear(),
            Tag::TableHead => (self.is_header, self.cell) = (true, 0),
            Tag::TableRow => self.cell = 0,
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                let line = std::mem::take(&mut self.line);
                match self.heading.take() {
                    Some(1) | None => {}
                    Some(2) => {
                        let _ = writeln!(self.text, ".SH {}", line.to_uppercase());
                    }
                    Some(_) => {
                        let _ = writeln!(self.text, ".SS {line}");
                    }
                }
            }
            TagEnd::CodeBlock => {
                self.is_literal = false;
                self.text.push_str(".fi\n.RE\n");
            }
            TagEnd::TableHead => self.is_header = false,
            TagEnd::TableCell => self.end_cell(),
            TagEnd::Paragraph | TagEnd::Item => self.end_line(),
            _ => {}
        }
    }

    /// A row is the first cell, and below it the others with the titles of their columns.
    fn end_cell(&mut self) {
        let line = std::mem::take(&mut self.line);
        let at = self.cell;
        self.cell += 1;
        if self.is_header {
            self.titles.push(line);
            return;
        }
        let title = self.titles.get(at).map(|title| title.to_lowercase()).unwrap_or_default();
        let _ = match (at, line.is_empty()) {
            (0, _) => writeln!(self.text, ".TP\n{}", request_free(&line)),
            (1, _) => writeln!(self.text, "{}", request_free(&line)),
            (_, true) => Ok(()),
            (_, false) => writeln!(self.text, ".br\n{}: {line}", capitalized(&title)),
        };
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            let _ = writeln!(self.text, "{}", request_free(&line));
        }
    }
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Text without the characters that begin an escape.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// A line that is no request, however it begins.
fn request_free(line: &str) -> String {
    match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_sections_keys_and_examples() {
        let release = Release { version: "1.2.3".to_owned(), time_s: 0, is_quick: false };
        let text = "# Title\n\n```ini\n.a = b\n```\n\n## Some keys\n\n| Key | Value | Default |\n| --- | \
            --- | --- |\n| `a.b-c` | a [number](x.md) | `7` |\n| `d` | text | |\n\n* one `x`\n";
        let page = page("x.conf", "a file", text, &release);
        let expected = ".TH X.CONF 5 \"\" \"leveret 1.2.3\"\n.SH NAME\nx.conf \\- a file\n.SH DESCRIPTION\n\
            .PP\n.RS\n.nf\n\\&.a = b\n.fi\n.RE\n.SH SOME KEYS\n.TP\n\\fBa.b\\-c\\fR\na number\n.br\n\
            Default: \\fB7\\fR\n.TP\n\\fBd\\fR\ntext\n.IP \\(bu 2\none \\fBx\\fR\n.SH SEE ALSO\n\
            \\fBleveret\\fR(1), \\fBleveretctl\\fR(1)\n";
        assert_eq!(page, expected);
    }
}
