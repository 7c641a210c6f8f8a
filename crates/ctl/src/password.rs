//! A password that a user types or a script pipes in.

use std::io::{self, BufRead, IsTerminal, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::failure::{DATA, Failure, SOFTWARE};

/// Reads a line from standard input; a terminal does not show it.
///
/// # Errors
/// If there is no line.
pub(crate) fn read() -> Result<String, Failure> {
    let mut out = io::stdout();
    // The prompt is not needed to type a password, so an error is ignored.
    let _ = write!(out, "Password: ").and_then(|()| out.flush());
    let hidden = Hidden::start();
    let mut line = String::new();
    let result = io::stdin().lock().read_line(&mut line);
    drop(hidden);
    let _ = writeln!(out);
    match result {
        Ok(0) => {
            Err(Failure::plain(DATA, "Error:\nPassword is not provided via argument or stdin"))
        }
        Ok(_) => Ok(line.trim_end_matches(['\n', '\r']).to_owned()),
        Err(error) => {
            Err(Failure::plain(SOFTWARE, format!("Error: cannot read a password: {error}")))
        }
    }
}

/// A terminal that does not show what is typed, until this is dropped.
struct Hidden(Option<Termios>);

impl Hidden {
    fn start() -> Self {
        let stdin = io::stdin();
        if !stdin.is_terminal() {
            return Self(None);
        }
        let Ok(before) = tcgetattr(&stdin) else { return Self(None) };
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        let is_set = tcsetattr(&stdin, OptionalActions::Flush, &quiet).is_ok();
        Self(is_set.then_some(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // An error cannot be reported any more.
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, before);
        }
    }
}
