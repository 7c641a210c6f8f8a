//! The command `help`: the list of commands, and the usage of one.

use serde_json::json;

use crate::arguments::Switch;
use crate::command::{Call, Command, Section, Tools};
use crate::failure::{Failure, USAGE};
use crate::format::Output;
use crate::tool::Tool;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Help,
        "help",
        "help [<command>]",
        "Lists all commands, or shows all about one",
        |call| match call.words {
            [] => Ok(Output::message(crate::help::all(call.tool))),
            [topic] if topic == "options" => Ok(Output::message(crate::help::OPTIONS)),
            words => match crate::help::find(call.tool, words) {
                Some(command) => Ok(Output::message(crate::help::one(call.tool, command))),
                None => unknown(call, words),
            },
        },
    )
    .of(Tools::ALL)
    .words(0, 2),
    Command::new(
        Section::Help,
        "version",
        "version",
        "Shows the version of this tool; as rabbitmqctl, the compatible version of RabbitMQ",
        |call| {
            let (version, node) = (call.tool.version(), call.node.name());
            let told = json!({"node": node, "value": {"version": version}, "result": "ok"});
            Ok(Output::Said(version.to_owned(), told))
        },
    )
    .of(Tools::ALL),
    Command::new(
        Section::Help,
        "examples",
        "examples [<topic>]",
        "Shows commands for the ten commonest tasks, or for one of them",
        |call| {
            let topic = call.words.first().map(String::as_str);
            let text = crate::help::examples::of_topic(call.tool, topic);
            text.map(Output::message).ok_or_else(|| {
                let topics: Vec<&str> = crate::help::examples::topics().collect();
                let problem = format!("there is no topic '{}'", call.word(0));
                Failure::arguments_lines(USAGE, [problem, format!("Topics: {}", topics.join(", "))])
            })
        },
    )
    .of(Tools::ALL)
    .words(0, 1),
    Command::new(
        Section::Help,
        "autocomplete",
        "autocomplete [prefix] [--timeout <timeout>]",
        "Lists the commands with a prefix",
        |call: &Call<'_>| {
            let mut names: Vec<&str> = crate::commands::of(call.tool).map(|command| command.name).collect();
            names.retain(|name| name.starts_with(call.word(0)));
            names.sort_unstable();
            let told = names.iter().map(|name| json!({"message": name})).collect();
            Ok(if names.is_empty() { Output::Done } else { Output::Said(names.join("\n"), told) })
        },
    )
    .of(Tools::ALL)
    .words(1, 1),
    Command::new(
        Section::Help,
        "man",
        "man",
        "Prints the manual page of this program, for the program man",
        |_| Ok(Output::Text(crate::help::man_page::page())),
    ),
    Command::new(
        Section::Help,
        "install_links",
        "install_links <directory> [--bat]",
        "Creates rabbitmqctl, rabbitmq-diagnostics and RabbitMQ's other tools in a directory, as links to this program; with --bat also their names on Windows",
        |call| crate::links::install(call.word(0), call.has("bat")),
    )
    .switches(&[Switch::flag("bat")])
    .words(1, 1),
];

/// The help for words that are no command: of a family, or the reason why there is none.
fn unknown(call: &Call<'_>, words: &[String]) -> Result<Output, Failure> {
    let name = call.word(0);
    match (words.len(), crate::help::family(call.tool, name), super::absent::absent(name)) {
        (1, Some(family), _) => Ok(Output::message(family)),
        (_, None, Some(absent)) => Err(absent),
        _ if call.tool == Tool::Leveretctl => {
            Err(Failure::lines(USAGE, crate::help::hints::unknown(call.tool, words).split('\n')))
        }
        _ => {
            let name = words.join(" ");
            Err(Failure::error_lines(USAGE, ["", &format!("Command '{name}' not found.")]))
        }
    }
}
