//! What tells the bindings from one thing to another apart in a path: RabbitMQ's `properties_key`.
//!
//! `~` for no routing key and no arguments, the routing key as it is quoted in forms if there are no
//! arguments, and behind a tilde the hash of these. Clients quote it once more for the path.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::api::bindings::erlang_hash;
use crate::snapshot::topology::BindingSnapshot;

/// What stands for neither routing key nor arguments, and between the two.
const TILDE: char = '~';

/// The key of a binding.
pub(crate) fn properties_key(binding: &BindingSnapshot) -> String {
    // What separates is no part of a routing key.
    let key = quoted(&binding.routing_key).replace(TILDE, "%7E");
    match (key.is_empty(), arguments_key(binding)) {
        (true, None) => TILDE.to_string(),
        (false, None) => key,
        (_, Some(arguments)) => format!("{key}{TILDE}{arguments}"),
    }
}

/// Whether `key`, from a path, means this binding.
pub(crate) fn means(key: &str, binding: &BindingSnapshot) -> bool {
    let (key, arguments) = match key.split_once(TILDE) {
        Some(("", "")) | None => (key.trim_end_matches(TILDE), None),
        Some((key, arguments)) => (key, Some(arguments)),
    };
    unquoted(key) == *binding.routing_key && arguments_key(binding).as_deref() == arguments
}

/// `text` as RabbitMQ quotes it in paths and forms.
pub(crate) fn quoted(text: &str) -> String {
    let quoted: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    quoted.replace('*', "%2A").replace("%7E", "~")
}

fn unquoted(text: &str) -> String {
    // A name without a value is everything up to the first `=` or `&`, which are quoted in a key.
    let pairs = form_urlencoded::parse(text.as_bytes());
    pairs.map(|(name, _)| name).next().unwrap_or_default().into_owned()
}

/// What stands for the arguments, if there are any.
fn arguments_key(binding: &BindingSnapshot) -> Option<String> {
    let arguments = binding.arguments.as_ref();
    let hash = || URL_SAFE_NO_PAD.encode(erlang_hash::hash(arguments).to_be_bytes());
    (!arguments.is_empty()).then(hash)
}

#[cfg(test)]
mod tests {
    use amqp::table::{Table, TableBuilder, Value};

    use super::*;

    fn binding(routing_key: &str, arguments: Table) -> BindingSnapshot {
        BindingSnapshot {
            vhost: "/".into(),
            source: "x".into(),
            destination: "q".into(),
            to_queue: true,
            routing_key: routing_key.into(),
            arguments,
        }
    }

    fn arguments() -> Table {
        let mut table = TableBuilder::new();
        table.insert("n", Value::I64(1)).insert("x-match", Value::LongStr(b"all"));
        table.finish()
    }

    #[test]
    fn keys_are_those_of_rabbitmq_and_mean_their_binding() {
        for (key, routing_key, with_arguments) in [
            ("~", "", false),
            ("k", "k", false),
            ("a.%23", "a.#", false),
            ("a.%2A", "a.*", false),
            ("a%7Eb+c%2Fd%25%C3%A9%2B", "a~b c/d%é+", false),
            ("a%3Db%26c", "a=b&c", false),
            ("k~D79veA", "k", true),
            ("~D79veA", "", true),
        ] {
            let arguments = if with_arguments { arguments() } else { Table::default() };
            let binding = binding(routing_key, arguments);
            assert_eq!(properties_key(&binding), key);
            assert!(means(key, &binding), "{key}");
        }
    }

    #[test]
    fn other_keys_mean_other_bindings() {
        let plain = binding("k", Table::default());
        for key in ["", "~", "K", "k~", "k~D79veA", "k~D79veA~", "~k", "nope"] {
            assert!(!means(key, &plain), "{key}");
        }
        assert!(!means("k", &binding("k", arguments())));
        assert!(!means("k~D79veB", &binding("k", arguments())));
        // Whoever has not quoted it once more means the same, if that is unambiguous.
        assert!(means("a.#", &binding("a.#", Table::default())));
    }
}
