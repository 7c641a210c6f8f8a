//! The figures: as a page for people, read back, and two of them compared.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};

/// Dearer by so much is too dear, in parts of a hundred; less may come of another processor, for which the
/// C library has other functions.
const DEARER_PERCENT_MAX: f64 = 5.0;

/// More allocations for a message than this are too many: an amortised one may move a little.
const ALLOCATIONS_MORE_MAX: f64 = 0.05;

/// Cost of a message of a case.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Count {
    pub(super) name: String,
    pub(super) instructions: f64,
    pub(super) allocations: f64,
}

/// All cases, and what they were compiled with.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) compiler: String,
    pub(super) counts: Vec<Count>,
}

/// Words before the name of the compiler.
const COMPILED_WITH: &str = "Compiled with ";

/// The page above the table.
const INTRODUCTION: &str = "\
# Instructions per message

Instructions and allocations of one message, counted by valgrind's callgrind with the program
`crates/instructions`: the broker's own code, optimised as in a release, with its
allocator, without sockets and disks. The figures are the same on a busy machine and on an idle one, so a
change of a few percent shows. They are not times: an instruction that waits for memory counts like any
other, and the operating system's share is missing. [Profile](profile.md) shows that share, and the
time of a broker under load.

`cargo xtask instructions` compares its counts with this page. It is a step of `cargo xtask test`, which
fails if a case costs over 5 % more instructions, or more allocations. A different compiler makes
different code: then differences are shown, and nothing fails. A change of the costs on purpose includes
the output of `cargo xtask instructions --write`, so that its costs are reviewed.

A case handles messages in batches of 64, as the broker enters a vhost once per read, and is warm when the
counting begins. Amortised costs, such as the growth of a queue, appear as fractions of an allocation.
";

impl Figures {
    /// The page.
    pub(super) fn page(&self) -> String {
        let mut page = format!("{INTRODUCTION}\n{COMPILED_WITH}{}.\n\n", self.compiler);
        page.push_str("| Case | Instructions | Allocations |\n| --- | ---: | ---: |\n");
        for Count { name, instructions, allocations } in &self.counts {
            // Writing into a string cannot fail.
            let _ = writeln!(page, "| {name} | {instructions:.0} | {allocations:.2} |");
        }
        page
    }

    /// Reads a page.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn read(page: &str) -> Result<Self> {
        let compiler = page.lines().find_map(|line| line.strip_prefix(COMPILED_WITH));
        let compiler = compiler.context("the page does not name a compiler")?;
        let mut counts = Vec::new();
        for line in page.lines().filter(|line| line.starts_with("| ")).skip(2) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [_, name, instructions, allocations, _] = cells.as_slice() else {
                anyhow::bail!("no row of figures: {line}");
            };
            counts.push(Count {
                name: (*name).to_owned(),
                instructions: instructions.parse().with_context(|| line.to_owned())?,
                allocations: allocations.parse().with_context(|| line.to_owned())?,
            });
        }
        Ok(Self { compiler: compiler.trim_end_matches('.').to_owned(), counts })
    }

    /// A table of what has changed since `written`, and what is worse than may be. With `is_all` every
    /// case must stand in both.
    pub(super) fn compare(&self, written: &Self, is_all: bool) -> (String, Vec<String>) {
        let mut table = format!(
            "{:<60} {:>12} {:>8} {:>11} {:>8}\n",
            "for one message", "instructions", "change", "allocations", "before"
        );
        let mut faults = Vec::new();
        for count in &self.counts {
            let Count { name, instructions, allocations } = count;
            let before = written.counts.iter().find(|before| before.name == *name);
            let Some(before) = before else {
                let _ = writeln!(
                    table,
                    "{name:<60} {instructions:>12.0} {:>8} {allocations:>11.2}",
                    "new"
                );
                faults.push(format!("{name}: nothing is written down, run with --write"));
                continue;
            };
            let percent = (instructions / before.instructions - 1.0) * 100.0;
            let _ = writeln!(
                table,
                "{name:<60} {instructions:>12.0} {percent:>+7.1}% {allocations:>11.2} {:>8.2}",
                before.allocations
            );
            if percent > DEARER_PERCENT_MAX {
                faults.push(format!("{name}: {percent:+.1} % instructions"));
            }
            if *allocations > before.allocations + ALLOCATIONS_MORE_MAX {
                let before = before.allocations;
                faults.push(format!("{name}: {allocations:.2} allocations, not {before:.2}"));
            }
        }
        let is_gone = |before: &&Count| !self.counts.iter().any(|count| count.name == before.name);
        if is_all {
            let gone = written.counts.iter().filter(is_gone);
            faults.extend(gone.map(|before| {
                format!("{}: is not counted any more, run with --write", before.name)
            }));
        }
        if self.compiler != written.compiler {
            let _ = writeln!(
                table,
                "not held against anybody: {} here, {} there",
                self.compiler, written.compiler
            );
            faults.clear();
        }
        (table, faults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(compiler: &str, rows: &[(&str, f64, f64)]) -> Figures {
        let count = |&(name, instructions, allocations): &(&str, f64, f64)| Count {
            name: name.to_owned(),
            instructions,
            allocations,
        };
        Figures { compiler: compiler.to_owned(), counts: rows.iter().map(count).collect() }
    }

    #[test]
    fn page_is_read_as_it_was_written() {
        let figures = figures("rustc 1.95.0, x86_64", &[("core: a", 812.0, 0.0), ("b", 9.0, 1.25)]);
        let read = Figures::read(&figures.page()).unwrap();
        assert_eq!((read.compiler, read.counts), (figures.compiler, figures.counts));
        assert!(Figures::read("# Something else\n").is_err());
    }

    #[test]
    fn dearer_is_a_fault_and_cheaper_is_none() {
        let before = figures("c", &[("a", 100.0, 0.0), ("b", 100.0, 1.0), ("gone", 1.0, 0.0)]);
        let faults = |rows, is_all| figures("c", rows).compare(&before, is_all).1;
        assert!(faults(&[("a", 104.0, 0.05), ("b", 50.0, 0.0)], false).is_empty());
        assert_eq!(faults(&[("a", 106.0, 0.0)], false), ["a: +6.0 % instructions"]);
        assert_eq!(faults(&[("b", 90.0, 1.1)], false), ["b: 1.10 allocations, not 1.00"]);
        assert_eq!(
            faults(&[("a", 100.0, 0.0), ("b", 100.0, 1.0), ("new", 1.0, 0.0)], true),
            [
                "new: nothing is written down, run with --write",
                "gone: is not counted any more, run with --write"
            ]
        );
    }

    #[test]
    fn another_compiler_is_shown_and_not_blamed() {
        let before = figures("c", &[("a", 100.0, 0.0)]);
        let (table, faults) = figures("d", &[("a", 200.0, 3.0)]).compare(&before, true);
        assert!(
            faults.is_empty() && table.contains("+100.0%") && table.contains("d here, c there")
        );
    }
}
