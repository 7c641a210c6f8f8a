//! The libraries that a program needs, as the linker has written them into the program.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::release::PACKING_TIME_MAX;
use crate::process;

/// The libraries of a program.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Needed {
    /// File names, such as `libc.so.6`.
    pub(super) names: Vec<String>,
    /// The newest version of glibc that a symbol requires: major and minor number.
    pub(super) glibc: Option<(u32, u32)>,
}

/// The libraries of the program in this file.
///
/// # Errors
/// When binutils are not installed, or the file is no program.
pub(super) fn needed(program: &Path) -> Result<Needed> {
    let mut command = Command::new("objdump");
    command.arg("-p").arg(program);
    Ok(parse(&process::output(command, PACKING_TIME_MAX)?))
}

fn parse(headers: &str) -> Needed {
    let words = || headers.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let name = |words: Vec<&str>| match words[..] {
        ["NEEDED", name] => Some(name.to_owned()),
        _ => None,
    };
    let version = |words: Vec<&str>| {
        let (major, minor) = words.last()?.strip_prefix("GLIBC_")?.split_once('.')?;
        // Of `2.3.4` the first two numbers.
        let minor = minor.split('.').next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    Needed { names: words().filter_map(name).collect(), glibc: words().filter_map(version).max() }
}

impl Needed {
    /// The libraries of two programs.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.names.extend(other.names);
        self.names.sort();
        self.names.dedup();
        self.glibc = self.glibc.max(other.glibc);
        self
    }

    /// The Debian packages of the libraries.
    ///
    /// # Errors
    /// When the package of a library is not known.
    pub(super) fn packages(&self) -> Result<Vec<String>> {
        let mut packages = Vec::new();
        for name in &self.names {
            let stem = name.split(".so").next().unwrap_or_default();
            packages.push(match stem {
                "libc" | "libm" | "libdl" | "libpthread" | "librt" => self.libc(),
                _ if stem.starts_with("ld-linux") => self.libc(),
                "libgcc_s" => "libgcc-s1".to_owned(),
                _ => bail!("no Debian package is known for {name}"),
            });
        }
        packages.sort();
        packages.dedup();
        Ok(packages)
    }

    fn libc(&self) -> String {
        match self.glibc {
            Some((major, minor)) => format!("libc6 (>= {major}.{minor})"),
            None => "libc6".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_carry_the_newest_version_that_a_symbol_requires() {
        let headers = "\nDynamic Section:\n  NEEDED               libc.so.6\n  NEEDED               \
            libgcc_s.so.1\n\nVersion References:\n  required from libc.so.6:\n    \
            0x09691974 0x00 03 GLIBC_2.3.4\n    0x069691b4 0x00 02 GLIBC_2.34\n    \
            0x06969194 0x00 05 GLIBC_2.14\n";
        let needed = parse(headers);
        assert_eq!(needed.packages().unwrap(), ["libc6 (>= 2.34)", "libgcc-s1"]);
        assert_eq!(parse("Program Header:\n"), Needed::default());
        let other = Needed { names: vec!["libssl.so.3".to_owned()], glibc: None };
        assert!(needed.and(other).packages().unwrap_err().to_string().contains("libssl.so.3"));
    }
}
