//! Contexts: brokers with names, so that no command needs their addresses and logins again.

use serde_json::json;

use crate::arguments::{Parsed, Switch};
use crate::command::{Call, Command, Section};
use crate::failure::{DATA, Failure};
use crate::format::{Empty, Output, Rows};
use crate::node::{Context, Contexts, address_given, with_environment};
use crate::printable::in_line;
use crate::term::Term;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Help,
        "context add",
        "context add <name> --http-url <url>|--data-dir <dir> [--username <name>] [--store-password] [--cacert <file>]",
        "Keeps the address of a broker and the login for it under a name",
        add,
    )
    .words(1, 1)
    .switches(&[Switch::flag("store-password")]),
    Command::new(
        Section::Help,
        "context use",
        "context use [<name>]",
        "Uses a context where neither options nor the environment name a node; without a name, none",
        choose,
    )
    .words(0, 1),
    Command::new(
        Section::Help,
        "context list",
        "context list",
        "Lists the contexts, without their passwords",
        list,
    ),
    Command::new(Section::Help, "context remove", "context remove <name>", "Removes a context", remove)
        .words(1, 1),
];

fn read() -> Result<Contexts, Failure> {
    with_environment(Contexts::read)
}

fn write(contexts: &Contexts) -> Result<String, Failure> {
    let file = with_environment(|environment| contexts.write(environment))?;
    Ok(in_line(&file.display().to_string()).into_owned())
}

fn add(call: &Call<'_>) -> Result<Output, Failure> {
    let mut contexts = read()?;
    let name = call.word(0);
    let context = of_options(call.options)?;
    let keeps_password = context.password.is_some();
    contexts.all.insert(name.to_owned(), context);
    let file = write(&contexts)?;
    let mut text = format!("Context '{}' is kept in {file}", in_line(name));
    if call.options.text("password").is_some() && !keeps_password {
        text.push_str(", without the password (see --store-password)");
    }
    Ok(Output::Text(text))
}

/// The context that the options describe.
fn of_options(options: &Parsed) -> Result<Context, Failure> {
    let text = |name: &str| options.text(name).map(str::to_owned);
    let http_url = address_given(options)?;
    let data_dir = text("data-dir").filter(|_| http_url.is_none());
    if http_url.as_ref().is_some_and(|url| url.contains('@')) {
        let problem = "--http-url must not have a login in it: use --username";
        return Err(Failure::bad_argument(Some(problem)));
    }
    if http_url.is_none() && data_dir.is_none() {
        let problem = "a context needs --http-url, --host or --data-dir";
        return Err(Failure::bad_argument(Some(problem)));
    }
    // The next command may run in another folder.
    let absolute = |path: String| match std::path::absolute(&path) {
        Ok(absolute) => absolute.display().to_string(),
        Err(_) => path,
    };
    let kept = || with_environment(|environment| (environment.variable)("LEVERET_PASSWORD"));
    let password = || text("password").or_else(kept);
    let stores = options.flag("store-password") == Some(true);
    Ok(Context {
        http_url,
        data_dir: data_dir.map(absolute),
        username: text("username"),
        password: stores.then(password).flatten(),
        cacert: text("cacert").map(absolute),
        is_insecure: options.flag("insecure") == Some(true),
    })
}

fn choose(call: &Call<'_>) -> Result<Output, Failure> {
    let mut contexts = read()?;
    if let Some(name) = call.words.first() {
        contexts.named(name)?;
    }
    contexts.used = call.words.first().cloned();
    write(&contexts)?;
    Ok(Output::Text(match call.words.first() {
        Some(name) => format!("Commands are about the broker of context '{}'", in_line(name)),
        None => "No context is in use".to_owned(),
    }))
}

fn list(_: &Call<'_>) -> Result<Output, Failure> {
    let contexts = read()?;
    let text = |text: &Option<String>| Term::text(text.clone().unwrap_or_default());
    let rows = contexts.all.iter().map(|(name, context)| {
        let is_used = contexts.used.as_ref() == Some(name);
        let address = context.http_url.clone().or_else(|| context.data_dir.clone());
        vec![
            ("name".to_owned(), Term::text(name.clone())),
            ("in_use".to_owned(), Term::of(Some(&json!(is_used)))),
            ("address".to_owned(), text(&address)),
            ("username".to_owned(), text(&context.username)),
            ("has_password".to_owned(), Term::of(Some(&json!(context.password.is_some())))),
        ]
    });
    Ok(Output::Rows(Rows { rows: rows.collect(), empty: Empty::Nothing, has_header: true }))
}

fn remove(call: &Call<'_>) -> Result<Output, Failure> {
    let mut contexts = read()?;
    let name = call.word(0);
    if contexts.all.remove(name).is_none() {
        return Err(Failure::error(DATA, format!("There is no context '{name}'")));
    }
    contexts.used = contexts.used.filter(|used| used != name);
    write(&contexts)?;
    Ok(Output::Done)
}
