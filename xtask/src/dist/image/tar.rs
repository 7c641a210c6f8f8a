//! A tar file in memory whose bytes depend on its entries alone, in the format ustar.

use anyhow::{Context as _, Result, ensure};

/// Size of a header, and the unit of the content behind it.
const BLOCK_BYTES: usize = 512;

/// Longest path in a header without a prefix.
const PATH_BYTES_MAX: usize = 100;

/// Offset and length of the checksum in a header.
const CHECKSUM: (usize, usize) = (148, 8);

/// The owner of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Owner {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Owner {
    /// The administrator.
    pub(super) const ROOT: Self = Self { uid: 0, gid: 0 };
}

/// A tar file that grows by an entry at a time.
#[derive(Debug)]
pub(super) struct Tar {
    bytes: Vec<u8>,
    /// Time of every entry, in seconds since 1970.
    time_s: u64,
}

impl Tar {
    /// An empty file.
    pub(super) fn new(time_s: u64) -> Self {
        Self { bytes: Vec::new(), time_s }
    }

    /// Adds a folder; those above it must have been added.
    ///
    /// # Errors
    /// When the path is too long.
    pub(super) fn folder(&mut self, path: &str, mode: u32, owner: Owner) -> Result<()> {
        self.header(&format!("{path}/"), b'5', mode, owner, 0, "")
    }

    /// Adds a file of root.
    ///
    /// # Errors
    /// When the path is too long, or the file too large.
    pub(super) fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<()> {
        self.header(path, b'0', mode, Owner::ROOT, content.len(), "")?;
        self.bytes.extend_from_slice(content);
        let end = self.bytes.len().next_multiple_of(BLOCK_BYTES);
        self.bytes.resize(end, 0);
        Ok(())
    }

    /// Adds a symbolic link.
    ///
    /// # Errors
    /// When a path is too long.
    pub(super) fn link(&mut self, path: &str, to: &str) -> Result<()> {
        self.header(path, b'2', 0o777, Owner::ROOT, 0, to)
    }

    /// The whole file.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(&[0; 2 * BLOCK_BYTES]);
        self.bytes
    }

    fn header(
        &mut self,
        path: &str,
        kind: u8,
        mode: u32,
        owner: Owner,
        content_bytes: usize,
        link: &str,
    ) -> Result<()> {
        let mut header = [0; BLOCK_BYTES];
        let mut text = |at: usize, length: usize, text: &[u8]| {
            ensure!(text.len() <= length, "{path}: a field of a tar file is too long");
            let field = header.get_mut(at..).and_then(|rest| rest.get_mut(..text.len()));
            field.context("no such field")?.copy_from_slice(text);
            Ok(())
        };
        // Octal digits and an end.
        let number = |value: u64, digits: usize| format!("{value:0digits$o}\0").into_bytes();
        text(0, PATH_BYTES_MAX, path.as_bytes())?;
        text(100, 8, &number(mode.into(), 7))?;
        text(108, 8, &number(owner.uid.into(), 7))?;
        text(116, 8, &number(owner.gid.into(), 7))?;
        text(124, 12, &number(content_bytes.try_into()?, 11))?;
        text(136, 12, &number(self.time_s, 11))?;
        // The checksum is computed as if it were spaces.
        text(CHECKSUM.0, CHECKSUM.1, b"        ")?;
        text(156, 1, &[kind])?;
        text(157, PATH_BYTES_MAX, link.as_bytes())?;
        text(257, 8, b"ustar\x0000")?;
        let sum: u64 = header.iter().copied().map(u64::from).sum();
        let sum = format!("{sum:06o}\0 ").into_bytes();
        let field = header.get_mut(CHECKSUM.0..CHECKSUM.0 + CHECKSUM.1);
        field.context("no checksum")?.copy_from_slice(&sum);
        self.bytes.extend_from_slice(&header);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn tar_reads_every_kind_of_entry() {
        let mut tar = Tar::new(1_000_000_000);
        let owner = Owner { uid: 999, gid: 998 };
        tar.folder("var", 0o1777, owner).unwrap();
        tar.file("var/full", 0o640, &[b'x'; 513]).unwrap();
        tar.file("var/empty", 0o755, b"").unwrap();
        tar.link("var/link", "full").unwrap();
        let path = std::env::temp_dir().join(format!("leveret-tar-{}", std::process::id()));
        fs::write(&path, tar.finish()).unwrap();
        let mut list = Command::new("tar");
        list.args(["--list", "--verbose", "--numeric-owner", "--full-time", "--utc", "--file"]);
        let listed = list.arg(&path).output().unwrap();
        fs::remove_file(&path).unwrap();
        assert!(listed.status.success() && listed.stderr.is_empty(), "{listed:?}");
        let lines = String::from_utf8(listed.stdout).unwrap();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let lines: Vec<String> = lines.lines().map(|line| words(line).join(" ")).collect();
        assert_eq!(
            lines,
            [
                "drwxrwxrwt 999/998 0 2001-09-09 01:46:40 var/",
                "-rw-r----- 0/0 513 2001-09-09 01:46:40 var/full",
                "-rwxr-xr-x 0/0 0 2001-09-09 01:46:40 var/empty",
                "lrwxrwxrwx 0/0 0 2001-09-09 01:46:40 var/link -> full",
            ]
        );
    }

    #[test]
    fn tar_refuses_paths_that_it_cannot_write() {
        assert!(Tar::new(0).file(&"a".repeat(101), 0o644, b"").is_err());
        assert!(Tar::new(0).link("a", &"b".repeat(101)).is_err());
    }
}
