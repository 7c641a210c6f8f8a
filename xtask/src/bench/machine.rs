//! The machine that is measured on: what it is, and what its disk does.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// Time to measure each way of writing.
const MEASURED: Duration = Duration::from_secs(2);

/// Bytes that a broker writes for a few messages.
const SMALL: usize = 4 * 1024;

/// Bytes of one write where only the rate counts.
const LARGE: usize = 1024 * 1024;

/// Most bytes that are written, should the disk be memory.
const WRITTEN_MAX: usize = 1024 * LARGE;

/// Properties of a machine that figures depend on.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) processors: usize,
    pub(super) model: String,
    pub(super) memory_bytes: u64,
    pub(super) kernel: String,
    /// Appends of 4 KiB per second, each of them synced.
    pub(super) syncs_per_s: f64,
    /// Bytes written sequentially per second, with one sync at the end.
    pub(super) written_per_s: f64,
}

impl Machine {
    /// Measures this machine; `folder` is on the disk that brokers use.
    ///
    /// # Errors
    /// When the kernel does not say, or nothing can be written.
    pub(super) fn this(folder: &Path) -> Result<Self> {
        let read = |path: &str| fs::read_to_string(path).with_context(|| path.to_owned());
        let processors = std::thread::available_parallelism().context("no processors")?.get();
        let model = field(&read("/proc/cpuinfo")?, "model name").unwrap_or("unknown").to_owned();
        let memory = read("/proc/meminfo")?;
        let kib = field(&memory, "MemTotal").and_then(|text| text.split(' ').next()?.parse().ok());
        let kernel = read("/proc/sys/kernel/osrelease")?.trim().to_owned();
        let (syncs_per_s, written_per_s) = (syncs(folder)?, written(folder)?);
        Ok(Self {
            processors,
            model,
            memory_bytes: kib.unwrap_or(0_u64) * 1024,
            kernel,
            syncs_per_s,
            written_per_s,
        })
    }
}

/// The value of a `name : value` line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim())
    })
}

fn syncs(folder: &Path) -> Result<f64> {
    with_file(folder, |file| {
        let (began, mut count) = (Instant::now(), 0.0);
        while began.elapsed() < MEASURED {
            file.write_all(&[b'x'; SMALL])?;
            file.sync_data()?;
            count += 1.0;
        }
        Ok(count / began.elapsed().as_secs_f64())
    })
}

fn written(folder: &Path) -> Result<f64> {
    let bytes = vec![b'x'; LARGE];
    with_file(folder, |file| {
        let (began, mut count) = (Instant::now(), 0);
        while began.elapsed() < MEASURED && count < WRITTEN_MAX {
            file.write_all(&bytes)?;
            count += bytes.len();
        }
        file.sync_data()?;
        Ok(count as f64 / began.elapsed().as_secs_f64())
    })
}

/// With a file that is gone afterwards.
fn with_file(folder: &Path, measure: impl Fn(&mut File) -> Result<f64>) -> Result<f64> {
    let path = folder.join("disk");
    let mut file = File::create(&path).with_context(|| path.display().to_string())?;
    let measured = measure(&mut file);
    fs::remove_file(&path).with_context(|| path.display().to_string())?;
    measured
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_names() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2:1\nMemTotal:  16 kB\n";
        assert_eq!(field(text, "model name"), Some("Some CPU @ 2:1"));
        assert_eq!(field(text, "MemTotal"), Some("16 kB"));
        assert_eq!(field(text, "model"), None);
    }
}
