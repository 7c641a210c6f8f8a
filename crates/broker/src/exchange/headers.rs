//! Headers exchanges: a binding's arguments match the message's headers.
//!
//! `x-match` is `all` (default), `any`, `all-with-x` or `any-with-x`; the first two ignore arguments that
//! start with `x-`. An argument without a value (`V`) requires only that the header is present. Values match
//! if they are equal. The width of an integer does not matter at the top level (observed on RabbitMQ 4.3.6),
//! but does inside nested tables and arrays.

use amqp::erlang_binary::PrintedBinary;
use amqp::table::{TableRef, Value};
use smallvec::SmallVec;

use super::binding::{Binding, BindingArguments, Destination};
use crate::erlang_term;
use crate::limits::HEADERS_BINDING_ARGUMENTS_MAX;
use crate::refusal::Refusal;

/// All bindings, sorted; a message is matched against each of them.
#[derive(Default, Debug)]
pub(super) struct Headers(Vec<Binding>);

/// The headers of a message, sorted by key as `publish_properties` leaves them.
type Fields<'a> = SmallVec<[(&'a [u8], Value<'a>); 8]>;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Match {
    any: bool,
    with_x: bool,
}

fn x_match(arguments: TableRef<'_>) -> Result<Match, Refusal> {
    let invalid = |problem: String| Err(Refusal::precondition_failed(problem));
    let all = Match { any: false, with_x: false };
    match arguments.get("x-match") {
        None => Ok(all),
        Some(Value::LongStr(b"all")) => Ok(all),
        Some(Value::LongStr(b"any")) => Ok(Match { any: true, ..all }),
        Some(Value::LongStr(b"all-with-x")) => Ok(Match { with_x: true, ..all }),
        Some(Value::LongStr(b"any-with-x")) => Ok(Match { any: true, with_x: true }),
        Some(Value::LongStr(other)) => invalid(format!(
            "Invalid x-match field value {}; expected all, any, all-with-x, or any-with-x",
            PrintedBinary(other)
        )),
        Some(Value::Binary(other)) => invalid(format!(
            "Invalid x-match field type binary (value {}); expected longstr",
            PrintedBinary(other)
        )),
        Some(other) => invalid(format!(
            "Invalid x-match field type {} (value {}); expected longstr",
            other.type_name(),
            erlang_term::value(&other)
        )),
    }
}

/// Refuses an invalid `x-match`, and more than [`HEADERS_BINDING_ARGUMENTS_MAX`] arguments.
pub(super) fn check_binding(arguments: TableRef<'_>) -> Result<(), Refusal> {
    let count = arguments.iter().count();
    if count > HEADERS_BINDING_ARGUMENTS_MAX {
        return Err(Refusal::precondition_failed(format!(
            "headers binding has {count} arguments, at most {HEADERS_BINDING_ARGUMENTS_MAX} are \
             allowed"
        )));
    }
    x_match(arguments).map(|_| ())
}

impl Headers {
    pub(super) fn bind(&mut self, binding: &Binding) {
        if let Err(at) = self.0.binary_search(binding) {
            self.0.insert(at, binding.clone());
        }
    }

    pub(super) fn unbind(&mut self, binding: &Binding) {
        let at = self.0.binary_search(binding).expect("a binding that is removed was added");
        self.0.remove(at);
    }

    pub(super) fn route(&self, headers: TableRef<'_>, found: &mut dyn FnMut(Destination)) {
        let headers: Fields<'_> = headers.iter().collect();
        for binding in &self.0 {
            if matches(binding.arguments.table(), &headers) {
                found(binding.destination);
            }
        }
    }
}

/// True if a binding with these arguments matches every message.
pub(super) fn is_any(arguments: &BindingArguments) -> bool {
    matches(arguments.table(), &[])
}

fn matches(arguments: TableRef<'_>, headers: &[(&[u8], Value<'_>)]) -> bool {
    let Ok(rule) = x_match(arguments) else {
        return false;
    };
    let counts = |key: &[u8]| {
        if rule.with_x { key != b"x-match" } else { !key.starts_with(b"x-") }
    };
    let mut asked = arguments.iter().filter(|(key, _)| counts(key));
    let holds = |(key, wanted): (&[u8], Value<'_>)| {
        let header = headers.binary_search_by_key(&key, |(key, _)| *key);
        let header = header.ok().and_then(|at| headers.get(at));
        header.is_some_and(|(_, value)| value_matches(&wanted, value))
    };
    if rule.any { asked.any(holds) } else { asked.all(holds) }
}

fn value_matches(wanted: &Value<'_>, value: &Value<'_>) -> bool {
    if *wanted == Value::Void {
        return true;
    }
    match (wanted.as_integer(), value.as_integer()) {
        (Some(wanted), Some(value)) => wanted == value,
        _ => wanted == value,
    }
}

#[cfg(test)]
mod tests {
    use amqp::table::{Table, TableBuilder};

    use super::*;

    fn table(entries: &[(&str, Value<'_>)]) -> Table {
        let mut table = TableBuilder::new();
        for (key, value) in entries {
            table.insert(*key, *value);
        }
        table.finish()
    }

    fn text(text: &str) -> Value<'_> {
        Value::LongStr(text.as_bytes())
    }

    #[test]
    fn arguments_match_by_rule() {
        let one = Value::I32(1);
        for (arguments, headers, expected) in [
            (&[("a", one)][..], &[("a", Value::I64(1)), ("b", one)][..], true),
            (&[("a", one), ("b", one)], &[("a", one)], false),
            (&[("x-match", text("any")), ("a", one), ("b", one)], &[("b", one)], true),
            (&[("x-match", text("any")), ("a", one)], &[("a", text("1"))], false),
            (&[("x-match", text("any"))], &[("a", one)], false),
            (&[], &[("a", one)], true),
            (&[("a", Value::Void)], &[("a", text("anything"))], true),
            (&[("a", Value::Void)], &[], false),
            (&[("x-a", one)], &[], true),
            (&[("x-match", text("all-with-x")), ("x-a", one)], &[], false),
            (&[("x-match", text("all-with-x")), ("x-a", one)], &[("x-a", one)], true),
            (&[("x-match", text("any")), ("x-a", one)], &[("x-a", one)], false),
            (&[("x-match", text("any-with-x")), ("x-a", one)], &[("x-a", one)], true),
            (&[("a", Value::Bool(true))], &[("a", one)], false),
        ] {
            let (arguments, headers) = (table(arguments), table(headers));
            let sorted = headers.as_ref().normalised();
            let sorted: Fields<'_> = sorted.as_ref().iter().collect();
            let matched = matches(arguments.as_ref(), &sorted);
            assert_eq!(matched, expected, "{arguments:?} against {headers:?}");
        }
    }

    #[test]
    fn x_match_that_is_invalid_is_refused() {
        let explain = |value| check_binding(table(&[("x-match", value)]).as_ref()).unwrap_err();
        assert_eq!(
            explain(text("foo")).explanation,
            "Invalid x-match field value <<\"foo\">>; expected all, any, all-with-x, or any-with-x"
        );
        assert_eq!(
            explain(Value::I32(5)).explanation,
            "Invalid x-match field type signedint (value 5); expected longstr"
        );
    }
}
