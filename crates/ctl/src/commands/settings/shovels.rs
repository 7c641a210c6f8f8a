//! The commands for a RabbitMQ that move the waiting messages of its queues to Leveret, by RabbitMQ's shovel plugin.

use serde_json::{Value, json};

use crate::arguments::Switch;
use crate::command::{Call, Command, Section};
use crate::failure::{DATA, Failure};
use crate::format::Output;
use crate::http::escaped;

pub(in crate::commands) const COMMANDS: &[Command] = &[Command::new(
    Section::Definitions,
    "shovel_commands",
    "shovel_commands <file_path> [--vhost <vhost>] [--destination-uri <uri>]",
    "Prints the commands that let a RabbitMQ move the waiting messages of the queues in its definitions to Leveret",
    print,
)
.words(1, 1)
.switches(&[Switch::text("destination-uri")])
.check(|call| {
    let uri = call.options.text("destination-uri").unwrap_or(DESTINATION);
    let (scheme, rest) = uri.split_once("://").unwrap_or_default();
    match matches!(scheme, "amqp" | "amqps") && !rest.trim_end_matches('/').contains(['/', '?']) {
        true => Ok(()),
        false => {
            let problem = "--destination-uri should be an address of AMQP with a login, without a vhost";
            Err(Failure::bad_argument(Some(problem)))
        }
    }
})];

/// The destination with placeholders, without the vhost.
const DESTINATION: &str = "amqp://USER:PASSWORD@HOST:5672";

const HEADLINES: &str = "\
# Run these commands on a node of the RabbitMQ that has the messages, after:
#   rabbitmq-plugins enable rabbitmq_shovel
# Replace USER, PASSWORD and HOST by those of Leveret (see --destination-uri). Its queues must exist.
# Each shovel moves the messages that its queue has when it begins, and then removes itself:
#   rabbitmqctl list_parameters
# A TTL begins anew when a message arrives.
";

fn print(call: &Call<'_>) -> Result<Output, Failure> {
    let wrong =
        |problem: String| Failure::error(DATA, format!("cannot read the definitions: {problem}"));
    let text = std::fs::read_to_string(call.word(0)).map_err(|error| wrong(error.to_string()))?;
    let root: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let destination = call.options.text("destination-uri").unwrap_or(DESTINATION);
    let only = call.options.text("vhost");
    Ok(Output::Text(commands(&root, destination.trim_end_matches('/'), only)))
}

/// A command for each queue of the definitions, or of one vhost; comments for queues that have none.
fn commands(root: &Value, destination: &str, only: Option<&str>) -> String {
    let text = |item: &Value, name| item.get(name).and_then(Value::as_str).map(str::to_owned);
    // Definitions of a single vhost have its name once.
    let of_all = text(root, "original_vhost_name");
    let mut lines = HEADLINES.to_owned();
    let queues = root.get("queues").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for queue in queues {
        let vhost =
            text(queue, "vhost").or_else(|| of_all.clone()).unwrap_or_else(|| "/".to_owned());
        let Some(name) = text(queue, "name").filter(|_| only.is_none_or(|only| only == vhost))
        else {
            continue;
        };
        let argument = queue.get("arguments").and_then(|all| text(all, "x-queue-type"));
        let kind = argument.or_else(|| text(queue, "type"));
        let has_control = |name: &str| name.contains(char::is_control);
        let why = if !matches!(kind.as_deref(), None | Some("" | "classic" | "quorum")) {
            "Leveret has no queues of its type"
        } else if has_control(&name) {
            "its name has control characters"
        } else if has_control(&vhost) {
            "its vhost has control characters"
        } else if name.starts_with("amq.") {
            "Leveret does not import it"
        } else {
            lines.push_str(&command(&vhost, &name, destination));
            continue;
        };
        // JSON keeps a name with any characters in one line.
        lines.push_str(&format!("# not moved: {} in vhost {}: {why}\n", json!(name), json!(vhost)));
    }
    lines.trim_end().to_owned()
}

fn command(vhost: &str, queue: &str, destination: &str) -> String {
    let value = json!({
        "src-protocol": "amqp091",
        // Without a host the shovel is connected to its own node, without a login.
        "src-uri": format!("amqp:///{}", escaped(vhost)),
        "src-queue": queue,
        "src-delete-after": "queue-length",
        "dest-protocol": "amqp091",
        "dest-uri": format!("{destination}/{}", escaped(vhost)),
        "dest-queue": queue,
        "dest-predeclared": true,
        "ack-mode": "on-confirm",
    });
    let words = [vhost, "shovel", &format!("to-leveret-{queue}"), &value.to_string()].map(quoted);
    format!("rabbitmqctl set_parameter -p {}\n", words.join(" "))
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    match word.chars().all(is_plain) && !word.is_empty() {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_has_a_command_of_its_own() {
        let root = json!({"queues": [
            {"vhost": "/", "name": "it's", "type": "quorum"},
            {"vhost": "shop a", "name": "q"},
            {"vhost": "/", "name": "s", "arguments": {"x-queue-type": "stream"}},
            {"vhost": "/", "name": "a\nrm -rf"},
        ]});
        let all = commands(&root, "amqp://h", None);
        let lines: Vec<&str> = all.lines().filter(|line| !line.starts_with("# ")).collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with(
            r#"rabbitmqctl set_parameter -p / shovel 'to-leveret-it'\''s' '{"src-protocol":"amqp091","src-uri":"amqp:///%2F""#
        ), "{all}");
        assert!(
            lines[1].starts_with("rabbitmqctl set_parameter -p 'shop a' shovel to-leveret-q '{"),
            "{all}"
        );
        assert!(lines[1].contains(r#""dest-uri":"amqp://h/shop%20a""#), "{all}");
        assert!(
            all.contains("\n# not moved: \"s\" in vhost \"/\": Leveret has no queues of its type")
        );
        assert!(all.contains(
            "\n# not moved: \"a\\nrm -rf\" in vhost \"/\": its name has control characters"
        ));
        assert!(!commands(&root, "amqp://h", Some("/")).contains("shop a"));
    }
}
