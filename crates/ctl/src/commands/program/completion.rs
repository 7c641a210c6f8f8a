//! The command `completion`: the scripts that shells load, and the candidates that they ask for.

use serde_json::Value;

use crate::arguments::Parsed;
use crate::command::{Call, Command, Section};
use crate::completion::candidates::{Candidate, Candidates, Names, candidates};
use crate::completion::shell_words::{escaped, split};
use crate::failure::{Failure, USAGE};
use crate::format::Output;
use crate::http::{ANSWER_TIMEOUT, path};
use crate::node::{Contexts, with_environment};
use crate::tool::Tool;

/// Time limit for names from the node, in seconds: a user waits for them.
const NAMES_TIMEOUT_S: &str = "2";

/// Names that are asked for at once, the maximum of the API.
const NAMES_MAX: usize = 500;

/// Characters behind which bash completes a word anew, if the shell does not say.
const WORD_BREAKS: &str = ":=";

pub(in crate::commands) const COMMANDS: &[Command] = &[Command::new(
    Section::Help,
    "completion",
    "completion <bash | zsh | fish>",
    "Prints the script that lets a shell complete commands, options and names",
    completion,
)
.everywhere()
.words(1, usize::MAX)];

fn completion(call: &Call<'_>) -> Result<Output, Failure> {
    let script = match (call.word(0), call.words.len()) {
        ("bash", 1) => include_str!("../../../completion/leveretctl.bash"),
        ("zsh", 1) => include_str!("../../../completion/leveretctl.zsh"),
        ("fish", 1) => include_str!("../../../completion/leveretctl.fish"),
        // The scripts ask for candidates.
        ("words", 2..) => return Ok(lines(call)),
        _ => {
            let problem = "the shell must be one of bash, zsh, fish";
            return Err(Failure::arguments(USAGE, problem));
        }
    };
    // Names of shell functions contain dashes in each of the three.
    Ok(Output::Text(script.replace("TOOL", call.tool.name())))
}

/// The candidates for the last word of a line: a word and its summary per line.
fn lines(call: &Call<'_>) -> Output {
    let rest = call.words.get(2..).unwrap_or_default();
    let (words, current, style) = match call.word(1) {
        "bash" => {
            let line = split(call.word(2));
            let breaks = rest.get(1).map_or(WORD_BREAKS, String::as_str);
            let style = Style { quotes: line.quote.is_none(), cut: cut(&line.current, breaks) };
            (line.words, line.current, style)
        }
        _ => {
            let (current, words) =
                rest.split_last().map_or((String::new(), &[][..]), |(c, w)| (c.clone(), w));
            (words.to_vec(), current, Style { quotes: false, cut: 0 })
        }
    };
    // `VARIABLE=value leveretctl ...`
    let mut words = words.into_iter().skip_while(|word| word.contains('='));
    let program = words.next().unwrap_or_default();
    let before: Vec<String> = words.collect();
    let found = match other_program(&program) {
        true => of_program(&program, &before, &current),
        false => {
            let mut limited = vec!["--timeout".to_owned(), NAMES_TIMEOUT_S.to_owned()];
            limited.extend(before);
            candidates(Tool::called(&program), &limited, &current, &names)
        }
    };
    match found {
        Candidates::Files => Output::Text("\tfiles".to_owned()),
        Candidates::Words(words) => style.output(&words),
    }
}

/// Form of the candidates.
struct Style {
    /// True if characters with a meaning for the shell are escaped.
    quotes: bool,
    /// Bytes of each candidate that the shell has set aside.
    cut: usize,
}

impl Style {
    fn output(&self, words: &[Candidate]) -> Output {
        let line = |(word, about): &Candidate| {
            let word = word.get(self.cut..).unwrap_or_default();
            let word = if self.quotes { escaped(word) } else { word.to_owned() };
            if about.is_empty() { word } else { format!("{word}\t{about}") }
        };
        // A line break would end the candidate.
        let is_shown = |(word, _): &&Candidate| !word.contains(line::is_obeyed);
        let lines: Vec<String> = words.iter().filter(is_shown).map(line).collect();
        if lines.is_empty() { Output::Done } else { Output::Text(lines.join("\n")) }
    }
}

/// Bytes of a word up to the last character behind which bash begins another word.
fn cut(word: &str, breaks: &str) -> usize {
    let is_break = |c: char| WORD_BREAKS.contains(c) && breaks.contains(c);
    word.rfind(is_break).map_or(0, |at| at + 1)
}

/// Names with this beginning; none if the node that knows them does not answer.
fn names(names: Names, line: &Parsed, beginning: &str) -> Vec<String> {
    let Some((at, field)) = source(names, line.text("vhost").unwrap_or("/"), beginning) else {
        let contexts = with_environment(Contexts::read).unwrap_or_default();
        return contexts.all.into_keys().collect();
    };
    let Ok(node) = crate::find(line, false, Some(ANSWER_TIMEOUT)) else { return Vec::new() };
    let Ok(answer) = node.api.get(&at) else { return Vec::new() };
    let all = answer.get("items").unwrap_or(&answer).as_array();
    let name =
        |one: &Value| one.get(field)?.as_str().filter(|name| !name.is_empty()).map(str::to_owned);
    let mut found: Vec<String> = all.into_iter().flatten().filter_map(name).collect();
    found.sort();
    found
}

/// The path at which the node lists the names, and the field that has them; none for names that no node knows.
fn source(names: Names, vhost: &str, beginning: &str) -> Option<(String, &'static str)> {
    let pattern = path(&[&format!("^{}", escaped_pattern(beginning))]);
    let pattern = pattern.strip_prefix("/api/").unwrap_or_default();
    let page = format!("?page=1&page_size={NAMES_MAX}&use_regex=true&columns=name&name={pattern}");
    Some(match names {
        Names::Vhosts => ("/api/vhosts?columns=name".to_owned(), "name"),
        Names::Users => ("/api/users?columns=name".to_owned(), "name"),
        Names::Queues => (path(&["queues", vhost]) + &page, "name"),
        Names::Exchanges => (path(&["exchanges", vhost]) + &page, "name"),
        Names::Policies => (path(&["policies", vhost]), "name"),
        Names::OperatorPolicies => (path(&["operator-policies", vhost]), "name"),
        Names::Redrives => ("/api/redrives".to_owned(), "id"),
        Names::Contexts => return None,
    })
}

/// A text as a pattern that matches exactly this text.
fn escaped_pattern(text: &str) -> String {
    // `\<` and `\>` are the bounds of a word.
    let is_plain = |c: char| {
        c.is_alphanumeric() || c.is_whitespace() || matches!(c, '_' | '<' | '>') || !c.is_ascii()
    };
    let one = |c| if is_plain(c) { format!("{c}") } else { format!("\\{c}") };
    text.chars().map(one).collect()
}

/// True for the other programs of Leveret, whose own help lists their options.
fn other_program(program: &str) -> bool {
    matches!(program.rsplit('/').next(), Some("leveret" | "leveret-perf"))
}

/// Candidates from the help of a program.
fn of_program(program: &str, before: &[String], current: &str) -> Candidates {
    let help = |words: &[&str]| {
        let asked = std::process::Command::new(program).args(words).arg("--help").output();
        asked.map(|asked| String::from_utf8_lossy(&asked.stdout).into_owned()).unwrap_or_default()
    };
    let all = help(&[]);
    let tasks = listed_tasks(&all);
    let task = before.iter().find(|word| tasks.iter().any(|(name, _)| name == *word));
    let text = task.map_or(all, |task| help(&[task]));
    if let Some(option) = before.last().filter(|word| word.starts_with('-')) {
        match placeholder(&text, option) {
            Some("FILE" | "DIR") => return Candidates::Files,
            Some(_) => return Candidates::Words(Vec::new()),
            None => {}
        }
    }
    let mut found: Vec<Candidate> = if current.starts_with('-') {
        listed_options(&text).into_iter().map(|option| (option, "")).collect()
    } else if task.is_none() {
        tasks.into_iter().map(|(name, _)| (name, "")).collect()
    } else {
        Vec::new()
    };
    found.retain(|(word, _)| word.starts_with(current));
    Candidates::Words(found)
}

/// The lines of a help that are options: `-q, --quiet`, `--config <FILE>`.
fn option_lines(help: &str) -> impl Iterator<Item = &str> {
    help.lines().map(str::trim_start).filter(|line| line.starts_with('-'))
}

fn listed_options(help: &str) -> Vec<String> {
    let long = |line: &str| {
        let name = line.split([' ', ',']).find(|word| word.starts_with("--"))?;
        Some(name.to_owned())
    };
    option_lines(help).filter_map(long).collect()
}

/// The name between angle brackets behind an option.
fn placeholder<'a>(help: &'a str, option: &str) -> Option<&'a str> {
    let of_option = |line: &&str| {
        line.split([' ', ',']).take_while(|word| !word.starts_with('<')).any(|word| word == option)
    };
    let (_, after) = option_lines(help).find(of_option)?.split_once('<')?;
    after.split('>').next()
}

/// The commands in a help, with their summaries.
fn listed_tasks(help: &str) -> Vec<(String, String)> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let task = |line: &str| {
        let (name, about) = line.trim().split_once(' ')?;
        Some((name.to_owned(), about.trim().to_owned()))
    };
    lines.take_while(|line| !line.is_empty()).filter_map(task).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "Loads a broker\n\nUsage: leveret-perf [OPTIONS] <COMMAND>\n\nCommands:\n  \
        throughput  Publish and consume\n  churn       Open and close\n\nOptions:\n  \
        -u, --uri <URI>      The broker\n      --html <FILE>  A report\n  -q, --quiet\n";

    #[test]
    fn options_of_another_program_are_read_from_its_help() {
        assert_eq!(listed_options(HELP), ["--uri", "--html", "--quiet"]);
        let tasks: Vec<String> = listed_tasks(HELP).into_iter().map(|(name, _)| name).collect();
        assert_eq!(tasks, ["throughput", "churn"]);
        assert_eq!(
            (placeholder(HELP, "--html"), placeholder(HELP, "-u")),
            (Some("FILE"), Some("URI"))
        );
        assert_eq!((placeholder(HELP, "--quiet"), placeholder(HELP, "--bogus")), (None, None));
        assert!(other_program("target/debug/leveret") && !other_program("leveretctl"));
    }

    #[test]
    fn candidate_is_written_as_bash_expects_it() {
        let told = |word: &str, current: &str, quotes| {
            let style = Style { quotes, cut: cut(current, "\n =:") };
            let output = style.output(&[(word.to_owned(), "")]);
            if let Output::Text(text) = output { text } else { format!("{output:?}") }
        };
        assert_eq!(told("--vhost=a b", "--vhost=a", true), "a\\ b");
        assert_eq!(told("queue:x", "queue", true), "queue:x");
        assert_eq!(told("a b", "a", false), "a b");
        assert_eq!(told("a\nb", "a", true), "Done");
        assert_eq!(cut("a:b", "\n "), 0);
    }

    #[test]
    fn name_as_a_pattern_matches_itself() {
        assert_eq!(escaped_pattern("a.b (x)*<y>"), "a\\.b \\(x\\)\\*<y>");
    }
}
