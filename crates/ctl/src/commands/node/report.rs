//! Report of the node and its vhosts, for a support case.

use super::status::{shown, status};
use crate::command::{Call, Command, Section};
use crate::commands::cluster::cluster_status::cluster_status;
use crate::failure::Failure;
use crate::format::{Formatter, Output, Style, formatted};
use crate::printable::in_line;

pub(in crate::commands) const COMMANDS: &[Command] = &[Command::new(
    Section::Monitoring,
    "report",
    "report [--timeout <timeout>]",
    "Shows the status of the node and the objects of each vhost",
    report,
)
.slow()
.everywhere()
.banner(|call| format!("Reporting server status of node {} ...\n", call.node.name()))];

fn report(call: &Call<'_>) -> Result<Output, Failure> {
    let style = Style { has_header: true, is_unicode: true };
    let text = |output: &Output| formatted(output, Formatter::Table, style, call.node.name());
    let mut all = format!("{}\n{}", text(&status(call)?), text(&cluster_status(call)?));
    let lists = ["list_connections", "list_channels", "list_policies", "list_queues"];
    let lists = lists.iter().chain(&["list_exchanges", "list_bindings", "list_permissions"]);
    let vhosts = call.node.api.get("/api/vhosts")?;
    for vhost in vhosts.as_array().into_iter().flatten() {
        let vhost = shown(vhost, "name");
        let words = ["--vhost".to_owned(), vhost.clone()];
        let options = crate::arguments::parse(&words, crate::GLOBAL_SWITCHES);
        let call = Call { words: &[], options: &options, ..*call };
        for name in lists.clone() {
            let Some(command) = crate::help::find(call.tool, &[(*name).to_owned()]) else {
                continue;
            };
            all.push_str(&format!(
                "\n{name} in vhost {}\n{}",
                in_line(&vhost),
                text(&(command.run)(&call)?)
            ));
        }
    }
    Ok(Output::Text(all))
}
