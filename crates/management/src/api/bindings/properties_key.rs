//! RabbitMQ's `properties_key`, which identifies a binding between two objects in a path.
//!
//! The key is `~` without routing key and arguments; the routing key, quoted as in forms, without arguments;
//! otherwise both, with a tilde and the hash of the arguments. Clients quote the key once more for the path.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use server::snapshot::topology::BindingSnapshot;

use crate::api::bindings::erlang_hash;

/// Separates routing key and hash, and stands for an empty key.
const TILDE: char = '~';

/// The key of a binding.
pub(crate) fn properties_key(binding: &BindingSnapshot) -> String {
    // A separator is quoted in a routing key.
    let key = quoted(&binding.routing_key).replace(TILDE, "%7E");
    match (key.is_empty(), arguments_key(binding)) {
        (true, None) => TILDE.to_string(),
        (false, None) => key,
        (_, Some(arguments)) => format!("{key}{TILDE}{arguments}"),
    }
}

/// True if `key` from a path identifies the binding.
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
    // Of a form it is one name without a value, also where a client has quoted the key only once.
    let name = text.replace('=', "%3D").replace('&', "%26");
    let pairs = form_urlencoded::parse(name.as_bytes());
    pairs.map(|(name, _)| name).next().unwrap_or_default().into_owned()
}

/// The hash of the arguments; none without arguments.
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
    fn properties_keys_match_those_of_rabbitmq() {
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
    fn properties_key_of_another_binding_differs() {
        let plain = binding("k", Table::default());
        for key in ["", "~", "K", "k~", "k~D79veA", "k~D79veA~", "~k", "nope"] {
            assert!(!means(key, &plain), "{key}");
        }
        assert!(!means("k", &binding("k", arguments())));
        assert!(!means("k~D79veB", &binding("k", arguments())));
        // A key that was quoted only once is accepted where it is unambiguous.
        for once in ["a.#", "a=b", "a&b", "k=v&x=y", "=", "?"] {
            assert!(means(once, &binding(once, Table::default())), "{once}");
        }
    }
}
