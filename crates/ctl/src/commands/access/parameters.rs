//! Runtime parameters, of vhosts and of the node.

use serde_json::json;

use super::vhosts::existing_vhost;
use crate::command::{Call, Command, Section};
use crate::documents;
use crate::failure::Failure;
use crate::format::Output;
use crate::http::{HttpError, path};
use crate::rows::{document, rows_of, same};

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Parameters,
        "set_parameter",
        "set_parameter [--vhost <vhost>] <component_name> <name> <value>",
        "Sets a runtime parameter of a vhost",
        set,
    )
    .words(3, 3)
    .banner(|call| {
        let (component, name, value) = (call.word(0), call.word(1), call.word(2));
        format!(
            "Setting runtime parameter \"{name}\" for component \"{component}\" to \"{value}\" in \
             vhost \"{}\" ...",
            call.vhost()
        )
    }),
    Command::new(
        Section::Parameters,
        "clear_parameter",
        "clear_parameter [--vhost <vhost>] <component_name> <name>",
        "Removes a runtime parameter of a vhost",
        clear,
    )
    .words(2, 2)
    .banner(|call| {
        format!(
            "Clearing runtime parameter \"{}\" for component \"{}\" on vhost \"{}\" ...",
            call.word(1),
            call.word(0),
            call.vhost()
        )
    }),
    Command::new(
        Section::Parameters,
        "list_parameters",
        "list_parameters [--vhost <vhost>] [--no-table-headers] [--timeout <timeout>]",
        "Lists the runtime parameters of a vhost",
        list,
    )
    .everywhere()
    .banner(|call| format!("Listing runtime parameters for vhost \"{}\" ...", call.vhost())),
    Command::new(
        Section::Parameters,
        "set_global_parameter",
        "set_global_parameter <name> <value>",
        "Sets a runtime parameter of all vhosts",
        set_global,
    )
    .words(2, 2)
    .banner(|call| {
        let (name, value) = (call.word(0), call.word(1));
        format!("Setting global runtime parameter \"{name}\" to \"{value}\" ...")
    }),
    Command::new(
        Section::Parameters,
        "clear_global_parameter",
        "clear_global_parameter <name>",
        "Removes a runtime parameter of all vhosts",
        clear_global,
    )
    .words(1, 1)
    .banner(|call| format!("Clearing global runtime parameter \"{}\" ...", call.word(0))),
    Command::new(
        Section::Parameters,
        "list_global_parameters",
        "list_global_parameters [--no-table-headers] [--timeout <timeout>]",
        "Lists the runtime parameters of all vhosts",
        list_global,
    )
    .everywhere()
    .banner(|_| "Listing global runtime parameters ...".to_owned()),
    Command::new(
        Section::Configuration,
        "set_cluster_name",
        "set_cluster_name <name>",
        "Changes the cluster name",
        |call| {
            call.node.api.put("/api/cluster-name", &json!({"name": call.word(0)}))?;
            Ok(Output::Done)
        },
    )
    .words(1, 1)
    .banner(|call| format!("Setting cluster name to {} ...", call.word(0))),
];

fn set(call: &Call<'_>) -> Result<Output, Failure> {
    let (component, name) = (call.word(0), call.word(1));
    let value = documents::parse(call.word(2))?;
    let body = json!({"vhost": call.vhost(), "component": component, "name": name, "value": value});
    match call.node.api.put(&path(&["parameters", component, call.vhost(), name]), &body) {
        Err(HttpError::Refused { status: 404, .. }) => Err(Failure::no_such_vhost(call.vhost())),
        result => result.map(|()| Output::Done).map_err(Failure::from),
    }
}

fn clear(call: &Call<'_>) -> Result<Output, Failure> {
    remove(call, &path(&["parameters", call.word(0), call.vhost(), call.word(1)]))
}

fn remove(call: &Call<'_>, path: &str) -> Result<Output, Failure> {
    if call.node.api.remove(path)? { Ok(Output::Done) } else { Err(Failure::no_such_parameter()) }
}

fn list(call: &Call<'_>) -> Result<Output, Failure> {
    existing_vhost(call)?;
    let all = call.node.api.get("/api/parameters")?;
    let all = all.as_array().into_iter().flatten();
    let of_vhost =
        all.filter(|one| one.get("vhost").and_then(|vhost| vhost.as_str()) == Some(call.vhost()));
    let row = |one| vec![same(one, "component"), same(one, "name"), document(one, "value")];
    Ok(of_vhost.map(row).collect::<Vec<_>>().into())
}

fn set_global(call: &Call<'_>) -> Result<Output, Failure> {
    let value = documents::parse(call.word(1))?;
    let body = json!({"name": call.word(0), "value": value});
    call.node.api.put(&path(&["global-parameters", call.word(0)]), &body)?;
    Ok(Output::Done)
}

fn clear_global(call: &Call<'_>) -> Result<Output, Failure> {
    remove(call, &path(&["global-parameters", call.word(0)]))
}

fn list_global(call: &Call<'_>) -> Result<Output, Failure> {
    let all = call.node.api.get("/api/global-parameters")?;
    Ok(rows_of(&all, |one| vec![same(one, "name"), document(one, "value")]).into())
}
