//! The few expressions of Erlang that tools for configuration send to `eval`, answered by their meaning.

use serde_json::{Value, json};

use crate::command::{Call, Command, Section};
use crate::failure::{Failure, UNAVAILABLE};
use crate::format::Output;
use crate::http::path;
use crate::term::{atom, binary, quoted};
use crate::tool::RABBITMQ_VERSION;

pub(in crate::commands) const COMMANDS: &[Command] = &[Command::new(
    Section::Operations,
    "eval",
    "eval <expression>",
    "Answers the expressions with which Puppet and others ask for the version and check a password",
    eval,
)
.words(0, usize::MAX)];

/// Question of an expression.
#[derive(PartialEq, Eq, Debug)]
enum Asked {
    /// The compatible version of RabbitMQ.
    Version,
    /// The name of the node.
    Node,
    /// The check of a password by the function that all logins go through.
    Login { user: String, password: String },
    /// The check by the function for users of the broker's own.
    OwnLogin { user: String, password: String },
}

/// Function that checks a password, with the form of its arguments: `""` stands for a text.
const LOGIN: &str = "rabbit_access_control:check_user_pass_login(<<\"\">>,<<\"\">>).";
const OWN_LOGIN: &str =
    "rabbit_auth_backend_internal:user_login_authentication(<<\"\">>,[{password,<<\"\">>}]).";

impl Asked {
    fn of(expression: &str) -> Option<Self> {
        let (form, mut texts) = parted(expression)?;
        let form = form.replace("list_to_binary(\"\")", "<<\"\">>");
        let mut text = || (!texts.is_empty()).then(|| texts.remove(0));
        Some(match form.as_str() {
            "rabbit_misc:version()." => Self::Version,
            "node()." => Self::Node,
            LOGIN => Self::Login { user: text()?, password: text()? },
            OWN_LOGIN => Self::OwnLogin { user: text()?, password: text()? },
            _ => return None,
        })
    }
}

/// An expression without spaces and with empty texts, and its texts. None if a text does not end, or has an escape
/// other than those of quotes and backslashes.
fn parted(expression: &str) -> Option<(String, Vec<String>)> {
    let (mut form, mut texts) = (String::new(), Vec::new());
    let mut rest = expression.chars();
    while let Some(c) = rest.next() {
        if c == '"' {
            form.push_str("\"\"");
            texts.push(text(&mut rest)?);
        } else if !c.is_whitespace() {
            form.push(c);
        }
    }
    Some((form, texts))
}

/// The text up to its quote.
fn text(rest: &mut std::str::Chars<'_>) -> Option<String> {
    let mut text = String::new();
    loop {
        match rest.next()? {
            '"' => return Some(text),
            '\\' => text.push(rest.next().filter(|c| matches!(c, '"' | '\\'))?),
            c => text.push(c),
        }
    }
}

fn eval(call: &Call<'_>) -> Result<Output, Failure> {
    let asked = match call.words {
        [expression] => Asked::of(expression),
        _ => None,
    };
    let node = call.node.name();
    let (text, value) = match asked {
        None => {
            let text = "Error: 'eval' is not available: there is no Erlang";
            return Err(Failure::plain(UNAVAILABLE, text));
        }
        Some(Asked::Version) => (quoted(RABBITMQ_VERSION), json!(RABBITMQ_VERSION)),
        Some(Asked::Node) => (atom(node), json!(node)),
        Some(Asked::Login { user, password }) => match login(call, &user, &password)? {
            Some(tags) => accepted(
                "user",
                &user,
                &tags,
                (
                    "[{rabbit_auth_backend_internal,none}]",
                    json!({"rabbit_auth_backend_internal": "none"}),
                ),
            ),
            None => refused(&format!("{},", binary(&user)), &[json!(user)], &user),
        },
        Some(Asked::OwnLogin { user, password }) => match login(call, &user, &password)? {
            Some(tags) => accepted("auth_user", &user, &tags, ("none", json!("none"))),
            None => refused("", &[], &user),
        },
    };
    let told = json!({"node": node, "value": value, "result": "ok"});
    Ok(Output::Said(text, told))
}

/// The tags of a user, if the password is right.
fn login(call: &Call<'_>, user: &str, password: &str) -> Result<Option<Vec<String>>, Failure> {
    if !call.node.api.accepts(user, password)? {
        return Ok(None);
    }
    let found = call.node.api.find(&path(&["users", user]))?.unwrap_or_default();
    Ok(Some(crate::commands::access::users::tags(&found)))
}

/// The answer to a right password, as a term and as JSON. A record of Erlang begins with its name, and ends with what
/// belongs to the function that checked.
fn accepted(
    record: &str,
    user: &str,
    tags: &[String],
    (own, own_value): (&str, Value),
) -> (String, Value) {
    let names: Vec<String> = tags.iter().map(|tag| atom(tag)).collect();
    let term = format!("{{ok,{{{record},{},[{}],{own}}}}}", binary(user), names.join(","));
    (term, json!(["ok", [record, user, tags, own_value]]))
}

/// The answer to a wrong password, or a user that does not exist.
fn refused(term: &str, value: &[Value], user: &str) -> (String, Value) {
    let why = "user '~ts' - invalid credentials";
    let all = [&[json!("refused")], value, &[json!(why), json!([user])]].concat();
    let term = format!("{{refused,{term}{},[{}]}}", quoted(why), binary(user));
    (term, Value::Array(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_tools_are_understood() {
        let login = |user: &str, password: &str| Asked::Login {
            user: user.into(),
            password: password.into(),
        };
        let own = |user: &str, password: &str| Asked::OwnLogin {
            user: user.into(),
            password: password.into(),
        };
        let check = "rabbit_access_control:check_user_pass_login";
        for (expression, asked) in [
            ("rabbit_misc:version().".to_owned(), Asked::Version),
            (" node( ) .\n".to_owned(), Asked::Node),
            (format!("{check}(list_to_binary(\"a\"), list_to_binary(\"b c\"))."), login("a", "b c")),
            (format!("{check}(<<\"a\">>,<<\"q\\\"\\\\,)\">>)."), login("a", "q\"\\,)")),
            (
                "rabbit_auth_backend_internal:user_login_authentication(<<\"a\">>, [{password, <<\"\">>}])."
                    .to_owned(),
                own("a", ""),
            ),
        ] {
            assert_eq!(Asked::of(&expression), Some(asked), "{expression}");
        }
    }

    #[test]
    fn other_expressions_are_not() {
        for expression in [
            "",
            "1 + 1.",
            "rabbit_misc:version()",
            "rabbit_misc:version(). rabbit_misc:version().",
            "rabbit_access_control:check_user_pass_login(<<\"a\">>).",
            "rabbit_access_control:check_user_pass_login(\"a\", \"b\").",
            "rabbit_access_control:check_user_pass_login(<<\"a\">>, <<\"b).",
            "rabbit_access_control:check_user_pass_login(<<\"a\\n\">>, <<\"b\">>).",
        ] {
            assert_eq!(Asked::of(expression), None, "{expression}");
        }
    }

    #[test]
    fn answers_are_terms() {
        let tags = ["monitoring".to_owned(), "my-tag".to_owned()];
        let (term, value) = accepted("auth_user", "a\"b", &tags, ("none", json!("none")));
        assert_eq!(term, "{ok,{auth_user,<<\"a\\\"b\">>,[monitoring,'my-tag'],none}}");
        assert_eq!(value, json!(["ok", ["auth_user", "a\"b", ["monitoring", "my-tag"], "none"]]));
        let (term, value) = refused("<<\"a\">>,", &[json!("a")], "a");
        assert_eq!(term, "{refused,<<\"a\">>,\"user '~ts' - invalid credentials\",[<<\"a\">>]}");
        assert_eq!(value, json!(["refused", "a", "user '~ts' - invalid credentials", ["a"]]));
    }
}
