//! The names of RabbitMQ's tools, as links to this program.

use std::io;
use std::path::Path;

use crate::failure::{Failure, INPUT_OUTPUT};
use crate::format::Output;
use crate::printable::in_line;

/// Names under which the program works as RabbitMQ's tools.
const NAMES: [&str; 6] = [
    "rabbitmqctl",
    "rabbitmq-diagnostics",
    "rabbitmq-plugins",
    "rabbitmq-queues",
    "rabbitmq-streams",
    "rabbitmq-upgrade",
];

/// Creates the links in a directory, which is made if there is none, and replaces existing links. With
/// `with_bat` also those with the names on Windows, which RabbitMQ's documentation has in its examples.
///
/// # Errors
/// If the directory cannot be made, a link cannot be created, or a file that is no link has its name.
pub(crate) fn install(directory: &str, with_bat: bool) -> Result<Output, Failure> {
    let cannot = |what: &str, error: &io::Error| {
        Failure::plain(INPUT_OUTPUT, format!("Error: cannot make {what}: {error}"))
    };
    let program = std::env::current_exe().map_err(|error| cannot("links", &error))?;
    // A fresh account has no folder for programs of its own yet.
    std::fs::create_dir_all(directory).map_err(|error| cannot(&in_line(directory), &error))?;
    let mut made = Vec::new();
    let on_windows = NAMES.iter().filter(|_| with_bat).map(|name| format!("{name}.bat"));
    for name in NAMES.iter().map(ToString::to_string).chain(on_windows) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn install_makes_the_names_of_windows_only_when_asked() {
        let folder = std::env::temp_dir().join(format!("leveretctl-links-{}", std::process::id()));
        let names = || {
            let entries = std::fs::read_dir(&folder).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> = names.collect();
            names.sort_unstable();
            names
        };
        let of_linux = [
            "rabbitmq-diagnostics",
            "rabbitmq-plugins",
            "rabbitmq-queues",
            "rabbitmq-streams",
            "rabbitmq-upgrade",
            "rabbitmqctl",
        ];
        install(&folder.to_string_lossy(), false).unwrap();
        assert_eq!(names(), of_linux);
        install(&folder.to_string_lossy(), true).unwrap();
        assert!(names().len() == 12 && names().contains(&"rabbitmqctl.bat".to_owned()));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
