//! The words of a script line.

use amqp::table::{Table, TableBuilder};
use broker::RedriveId;

use super::values;

/// The words of a line; `"..."` quotes, `-` is the empty string, `\r` and `\n` are line ends.
pub(crate) struct Words(std::collections::VecDeque<String>);

impl Words {
    pub(crate) fn new(line: &str) -> Self {
        let mut words = std::collections::VecDeque::new();
        let (mut word, mut quoted, mut any) = (String::new(), false, false);
        let line = line.replace("\\r", "\r").replace("\\n", "\n");
        for c in line.chars() {
            match c {
                '"' => {
                    quoted = !quoted;
                    any = true;
                    word.push('"');
                }
                ' ' if !quoted => {
                    if any {
                        words.push_back(std::mem::take(&mut word));
                        any = false;
                    }
                }
                c => {
                    word.push(c);
                    any = true;
                }
            }
        }
        if any {
            words.push_back(word);
        }
        Self(words)
    }

    /// A leading `name:` or `name.channel:` says who acts; otherwise it is client `c` on channel 1.
    pub(crate) fn actor(&mut self) -> (String, u16) {
        let Some(actor) = self.0.front().and_then(|word| word.strip_suffix(':')) else {
            return ("c".to_owned(), 1);
        };
        let (name, channel) = actor.split_once('.').unwrap_or((actor, "1"));
        let actor = (name.to_owned(), channel.parse().unwrap());
        self.0.pop_front();
        actor
    }

    pub(crate) fn try_next(&mut self) -> Option<String> {
        let word = self.0.pop_front()?;
        Some(if word == "-" { String::new() } else { word.replace('"', "") })
    }

    pub(crate) fn next(&mut self) -> String {
        self.try_next().expect("another word")
    }

    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let at = self.0.iter().position(|word| word == name);
        at.and_then(|at| self.0.remove(at)).is_some()
    }

    /// The next `key=value`.
    pub(crate) fn pair(&mut self) -> Option<(String, String)> {
        let at = self.0.iter().position(|word| word.contains('='))?;
        let word = self.0.remove(at)?;
        let (key, value) = word.split_once('=')?;
        Some((key.to_owned(), value.to_owned()))
    }

    pub(crate) fn named(&mut self, name: &str) -> Option<String> {
        let prefix = format!("{name}=");
        let at = self.0.iter().position(|word| word.starts_with(&prefix))?;
        let word = self.0.remove(at)?;
        Some(word[prefix.len()..].replace('"', ""))
    }

    /// A point in time: `250ms`, `2s`, `100.5ms`.
    pub(crate) fn micros(&mut self) -> u64 {
        let word = self.next();
        let (number, unit) = match (word.strip_suffix("ms"), word.strip_suffix('s')) {
            (Some(number), _) => (number, 1e3),
            (None, Some(number)) => (number, 1e6),
            (None, None) => panic!("{word} has no unit"),
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "small, positive"
        )]
        let micros = (number.parse::<f64>().unwrap() * unit).round() as u64;
        micros
    }

    pub(crate) fn redrive(&mut self) -> RedriveId {
        RedriveId(self.next().parse().expect("the number of a redrive"))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn rest(&self) -> String {
        self.0.iter().cloned().collect::<Vec<_>>().join(" ")
    }

    /// All remaining `key=value` words as a table.
    pub(crate) fn table(&mut self) -> Table {
        let mut table = TableBuilder::new();
        while let Some((key, text)) = self.pair() {
            values::insert(&mut table, &key, &text);
        }
        table.finish()
    }
}
