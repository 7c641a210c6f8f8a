//! The names of RabbitMQ's tools, as links to this program.

use std::io;
use std::path::Path;

use crate::failure::{Failure, INPUT_OUTPUT};
use crate::format::Output;
use crate::printable::in_line;

/// Names under which the program works as RabbitMQ's tools, also those on Windows.
const NAMES: [&str; 12] = [
    "rabbitmqctl",
    "rabbitmq-diagnostics",
    "rabbitmq-plugins",
    "rabbitmq-queues",
    "rabbitmq-streams",
    "rabbitmq-upgrade",
    "rabbitmqctl.bat",
    "rabbitmq-diagnostics.bat",
    "rabbitmq-plugins.bat",
    "rabbitmq-queues.bat",
    "rabbitmq-streams.bat",
    "rabbitmq-upgrade.bat",
];

/// Creates the links in a directory, which is made if there is none, and replaces existing links.
///
/// # Errors
/// If the directory cannot be made, a link cannot be created, or a file that is no link has its name.
pub(crate) fn install(directory: &str) -> Result<Output, Failure> {
    let cannot = |what: &str, error: &io::Error| {
        Failure::plain(INPUT_OUTPUT, format!("Error: cannot make {what}: {error}"))
    };
    let program = std::env::current_exe().map_err(|error| cannot("links", &error))?;
    // A fresh account has no folder for programs of its own yet.
    std::fs::create_dir_all(directory).map_err(|error| cannot(&in_line(directory), &error))?;
    let mut made = Vec::new();
    for name in NAMES {
        let link = Path::new(directory).join(name);
        let shown = link.display().to_string();
        link_to(&program, &link).map_err(|error| cannot(&shown, &error))?;
        let target = program.display().to_string();
        made.push(format!("{} -> {}", in_line(&shown), in_line(&target)));
    }
    Ok(Output::Text(made.join("\n")))
}

fn link_to(program: &Path, link: &Path) -> io::Result<()> {
    if link.is_symlink() {
        std::fs::remove_file(link)?;
    }
    std::os::unix::fs::symlink(program, link)
}
