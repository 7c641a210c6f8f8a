//! `leveretctl`, which also works as `rabbitmqctl` and `rabbitmq-diagnostics` under those names: operates a
//! node over its management API, with the commands, words and exit codes of RabbitMQ's tools.
//!
//! A run reads the command line, finds the node, performs the command, and prints the result in a format.
//! The commands are in `commands`, one file per subject.

mod arguments;
mod certificates;
mod columns;
mod command;
mod commands;
mod completion;
mod documents;
mod failure;
mod format;
mod help;
mod http;
mod links;
mod moment;
mod node;
mod password;
mod pids;
mod printable;
mod process;
mod rows;
mod term;
mod timestamp;
mod tool;

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::arguments::{Parsed, Switch, parse};
use crate::command::{Call, Command, Section};
use crate::failure::{Failure, TIMEOUT, UNAVAILABLE, USAGE};
use crate::format::{Formatter, Output, Style, formatted};
use crate::http::{HttpError, STOPPED};
use crate::node::{Node, with_environment};
use crate::printable::{in_line, printable};
use crate::tool::Tool;

/// The options of all commands.
const GLOBAL_SWITCHES: &[Switch] = &[
    Switch::text("node").or('n'),
    Switch::text("vhost").or('p'),
    Switch::flag("quiet").or('q'),
    Switch::flag("silent").or('s'),
    Switch::flag("longnames").or('l'),
    Switch::integer("timeout").or('t'),
    Switch::text("formatter"),
    Switch::flag("table-headers"),
    Switch::flag("dry-run"),
    Switch::flag("help").or('?'),
    Switch::flag("version"),
    Switch::flag("print-stacktrace"),
    Switch::flag("pad-to-header"),
    Switch::text("printer"),
    Switch::text("file"),
    Switch::text("script-name"),
    Switch::text("erlang-cookie"),
    Switch::text("context"),
    Switch::text("http-url"),
    Switch::text("host"),
    Switch::text("port"),
    Switch::text("username"),
    Switch::text("password"),
    Switch::text("cacert"),
    Switch::flag("insecure"),
    Switch::text("data-dir"),
    Switch::text("config"),
];

/// Output and exit code of a run.
#[derive(Default, Debug)]
struct RunOutput {
    out: String,
    err: String,
    code: u8,
}

impl RunOutput {
    fn out(text: &str) -> Self {
        Self { out: format!("{text}\n"), ..Self::default() }
    }

    fn err(code: u8, text: String) -> Self {
        Self { err: text, code, ..Self::default() }
    }
}

fn main() -> ExitCode {
    let mut line = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let tool = Tool::called(&line.next().unwrap_or_default());
    let printed = run(tool, &line.collect::<Vec<_>>());
    // A closed stream is no error: its reader wants no more output.
    let _ = std::io::stdout().write_all(printed.out.as_bytes());
    // The text may contain names and addresses from clients, so it is made printable.
    let err = printable::without_passwords(&printed.err);
    let _ = std::io::stderr().write_all(printable(&err).as_bytes());
    ExitCode::from(printed.code)
}

/// Finds the command of a line and performs it.
fn run(tool: Tool, line: &[String]) -> RunOutput {
    let of_commands = commands::of(tool).flat_map(|command| command.switches);
    let every: Vec<Switch> = GLOBAL_SWITCHES.iter().chain(of_commands).copied().collect();
    let first = parse(line, &every);
    let Some(name) = first.words.first().filter(|name| !name.is_empty()) else {
        return match first.flag("version") {
            Some(true) => RunOutput::out(tool.version()),
            _ => RunOutput::err(USAGE, help::all(tool)),
        };
    };
    let Some(command) = help::find(tool, &first.words) else {
        if let Some(Failure::Message { code, text, .. }) = commands::absent(name) {
            return RunOutput::err(code, format!("{text}\n"));
        }
        return RunOutput::err(USAGE, format!("{}\n", help::hints::unknown(tool, &first.words)));
    };
    if first.flag("help") == Some(true) {
        return RunOutput::out(&help::one(tool, command));
    }
    let switches: Vec<Switch> = GLOBAL_SWITCHES.iter().chain(command.switches).copied().collect();
    let options = parse(line, &switches);
    let words = options.words.get(command.name_words().count()..).unwrap_or_default();
    let mut printed = RunOutput::default();
    if let Err(failure) = perform(tool, command, words, &options, &mut printed) {
        printed.code = failure.code;
        printed.err = format!("{}\n", failure.text);
        if failure.shows_usage {
            let usage = help::usage(tool, command);
            let given = printable::arguments_given(line, command.name, &switches);
            printed.err.push_str(&format!("Arguments given:\n\t{}\n{usage}\n", in_line(&given)));
        }
    }
    printed
}

/// A failure as it is printed.
struct FailureText {
    /// Exit code of the process.
    code: u8,
    text: String,
    /// True if the usage of the command follows.
    shows_usage: bool,
}

/// Performs a command.
fn perform(
    tool: Tool,
    command: &Command,
    words: &[String],
    options: &Parsed,
    printed: &mut RunOutput,
) -> Result<(), FailureText> {
    let early = |failure| describe(failure, command, None, options);
    let formatter = valid(command, words, options).map_err(early)?;
    let usual = command.answer_timeout();
    let checks = !matches!(command.section, Section::Help | Section::Plugins);
    let found = || find(options, checks, usual);
    let node = find_for(command, options, usual).map_err(early)?;
    let is_quiet = ["quiet", "silent"].iter().any(|flag| options.flag(flag) == Some(true))
        || formatter.is_for_programs();
    let call = Call { tool, words, options, node: &node, find: &found, is_quiet };
    let result = command.validate(&call).and_then(|()| command.answer(&call, printed));
    let style = Style {
        has_header: options.flag("table-headers") != Some(false)
            && options.flag("silent") != Some(true),
        is_unicode: speaks_unicode(),
    };
    match result {
        Ok(Output::Done) if formatter != Formatter::Json => Ok(()),
        Ok(output) => {
            if let Output::Graded { code, .. } = output {
                printed.code = code;
            }
            // JSON alone has the name, for which the node may have to be asked.
            let name = if formatter == Formatter::Json { node.name() } else { "" };
            printed.out.push_str(&formatted(&output, formatter, style, name));
            Ok(())
        }
        Err(Failure::WithDocument { document, .. }) if formatter == Formatter::Json => {
            let text = document.to_string();
            Err(FailureText { code: UNAVAILABLE, text, shows_usage: false })
        }
        Err(failure) => Err(describe(failure, command, Some(&node), options)),
    }
}

/// Checks words and options without the node. Returns the format of the output.
fn valid(command: &Command, words: &[String], options: &Parsed) -> Result<Formatter, Failure> {
    if !options.wrong.is_empty() {
        let mut problems = vec!["Invalid options for this command:".to_owned()];
        let switches: Vec<Switch> =
            GLOBAL_SWITCHES.iter().chain(command.switches).copied().collect();
        for (written, value) in &options.wrong {
            let value = value.as_deref().unwrap_or_default();
            let value = printable::option_value(written, value, &switches);
            problems.push(format!("{written} : {value}"));
        }
        return Err(Failure::arguments_lines(USAGE, problems));
    }
    if words.len() < command.words.0 {
        return Err(Failure::not_enough_arguments());
    }
    if words.len() > command.words.1 {
        return Err(Failure::too_many_arguments());
    }
    let Some(name) = options.text("formatter") else { return Ok(command.formatter) };
    Formatter::named(name)
        .ok_or_else(|| Failure::arguments(USAGE, format!("there is no formatter '{name}'")))
}

impl Command {
    /// The output of a call, with its banner before it.
    fn answer(&self, call: &Call<'_>, printed: &mut RunOutput) -> Result<Output, Failure> {
        // A node that has yet to start has no name to check.
        let needs_node = !self.waits_for_start
            && !matches!(self.section, Section::Help | Section::Plugins | Section::Other);
        if needs_node {
            (call.find)()?;
        }
        // A word of the command line ends no line of it.
        let options = call.options.map(|text| in_line(text).into_owned());
        let words: Vec<String> = call.words.iter().map(|word| in_line(word).into_owned()).collect();
        let shown = Call { words: &words, options: &options, ..*call };
        let banner = |printed: &mut RunOutput| {
            let banner = if call.is_quiet { String::new() } else { (self.banner)(&shown) };
            if !banner.is_empty() {
                printed.out.push_str(&printable(&printable::without_passwords(&banner)));
                printed.out.push('\n');
            }
        };
        // Except for a command with a banner of its own.
        let tries = self.switches.iter().any(|switch| switch.name == "dry-run");
        if call.has("dry-run") && !tries {
            banner(printed);
            return Ok(Output::Done);
        }
        if self.waits {
            let text = (self.banner)(&shown);
            if !text.is_empty() {
                call.say(&text);
            }
            return (self.run)(call);
        }
        let result = (self.run)(call);
        // A node that is missing or in the wrong state is reported before any other error.
        if !matches!(&result, Err(Failure::Http(error)) if error.is_about_the_node()) {
            banner(printed);
        }
        result
    }
}

/// Time that a node which starts has for its data directory.
const DIRECTORY_GRACE: Duration = Duration::from_secs(3);

/// Finds the node for a command. One that waits for a start is patient with a directory that is not there yet.
fn find_for(command: &Command, options: &Parsed, usual: Option<Duration>) -> Result<Node, Failure> {
    let look = || find(options, false, usual);
    if command.section == Section::Help {
        // A wrong context keeps nobody from its removal.
        return Ok(look().unwrap_or_else(|_| Node::absent()));
    }
    if command.waits_for_start && options.text("data-dir").is_some() {
        let found = commands::poll(Instant::now() + DIRECTORY_GRACE, || look().ok());
        return found.map_or_else(look, Ok);
    }
    look()
}

/// Finds the node in the options; `checks` verifies its name. `usual` limits the time for each answer, unless the options do.
fn find(options: &Parsed, checks: bool, usual: Option<Duration>) -> Result<Node, Failure> {
    with_environment(|environment| {
        let node = Node::find(options, environment, usual)?;
        if checks {
            node.check_name(environment)?;
        }
        Ok(node)
    })
}

/// True if the locale says that the terminal shows Unicode.
fn speaks_unicode() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    locale.is_some_and(|locale| locale.to_lowercase().replace('-', "").contains("utf8"))
}

/// Text and exit code of a failure.
fn describe(
    failure: Failure,
    command: &Command,
    node: Option<&Node>,
    options: &Parsed,
) -> FailureText {
    let error = match failure {
        Failure::Message { code, text, shows_usage } => {
            return FailureText { code, text, shows_usage };
        }
        Failure::WithDocument { code, text, .. } => {
            return FailureText { code, text, shows_usage: false };
        }
        Failure::Http(error) => error,
    };
    let url = node.map(|node| node.api.url()).unwrap_or_default();
    let needs = |state: &str, remedy: &str| {
        let text = format!(
            "Error: this command requires the 'rabbit' app to be {state} on the target node. \
             {remedy} it with 'rabbitmqctl {}_app'.",
            remedy.to_lowercase()
        );
        FailureText { code: USAGE, text, shows_usage: true }
    };
    let unavailable = |text| FailureText { code: UNAVAILABLE, text, shows_usage: false };
    match error {
        HttpError::Unreachable(why) => {
            let text = node.map(|node| node.unreachable(&why)).unwrap_or(why);
            unavailable(in_line(&text).into_owned())
        }
        HttpError::TimedOut => {
            let usual = || command.answer_timeout().unwrap_or_default().as_secs();
            let given = options.integer("timeout").and_then(|seconds| u64::try_from(seconds).ok());
            let timeout_ms = given.unwrap_or_else(usual) * 1000;
            let name = options.text("node").unwrap_or("rabbit@localhost");
            let text = format!(
                "Error: operation {} on node {name} timed out. Timeout value used: {timeout_ms}\n\
                 {url} has not answered in time",
                command.name
            );
            FailureText { code: TIMEOUT, text, shows_usage: false }
        }
        HttpError::Refused { status: 401, reason } => {
            let who = node.map(|node| node.api.who()).unwrap_or_default();
            unavailable(format!("Error: the node at {url} refuses {who}: {}", in_line(&reason)))
        }
        HttpError::Refused { status: 503, reason } if reason == STOPPED => {
            needs("running", "Start")
        }
        HttpError::Refused { status: 409, .. } => needs("stopped", "Stop"),
        HttpError::Refused { reason, .. } => unavailable(format!("Error:\n{}", refusal(&reason))),
    }
}

/// The reason of a refusal. A text of RabbitMQ with several lines keeps them; in any other a name ends no line.
fn refusal(reason: &str) -> String {
    let has_lines =
        ["Validation failed\n", "[{key_missing,"].iter().any(|text| reason.starts_with(text));
    let (text, end) = match reason.strip_suffix('\n') {
        Some(text) => (text, "\n"),
        None => (reason, ""),
    };
    if has_lines { reason.to_owned() } else { format!("{}{end}", in_line(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_in_a_refusal_ends_no_line() {
        assert_eq!(refusal("no queue 'a\nb'\n"), "no queue 'a\\u000ab'\n");
        let lines = "Validation failed\n\n0 is not a valid queue expiry\n";
        assert_eq!(refusal(lines), lines);
    }

    #[test]
    fn word_in_a_banner_ends_no_line() {
        let line = ["list_queues", "-p", "a\nb\u{1b}", "--dry-run"].map(str::to_owned);
        let printed = run(Tool::called("leveretctl"), &line);
        assert_eq!(
            printed.out,
            "Timeout: 60.0 seconds ...\nListing queues for vhost a\\u000ab\\u001b ...\n"
        );
    }
}
