//! Figures as text: a line for the terminal, and docs/internals/benchmarks.md.

use std::fmt::Write as _;

use anyhow::Result;

use super::figures::{Figure, digits, short};
use super::loads::{Bound, Goal};
use super::machine::Machine;
use super::plot::{Group, bars};
use super::rounds::{Cell, Row, is_reached};

/// Content of a report.
#[derive(Debug)]
pub(super) struct Report<'a> {
    pub(super) machine: &'a Machine,
    /// The headings of the columns; Leveret is the first.
    pub(super) subjects: &'a [&'static str],
    /// Product names and versions of the brokers.
    pub(super) products: &'a [Option<String>],
    pub(super) rounds: u32,
    pub(super) seconds: f64,
    pub(super) rows: &'a [Row],
}

/// Folder of the plots, relative to the document.
pub(super) const RATES_PLOT: &str = "images/benchmark-rates.svg";
pub(super) const CPU_PLOT: &str = "images/benchmark-cpu.svg";

/// Text of a cell without a figure.
const NOTHING: &str = "\u{2013}";

/// Beginning of the document.
const ABOUT: &str = "# Benchmarks\n\n\
    `cargo xtask bench --report` writes this page. It loads each program in turn with\n\
    [leveret-perf](../reference/leveret-perf.md), several rounds each, and takes medians; RabbitMQ runs the longest\n\
    loads once. Leveret starts anew for each load, with default settings: a confirm follows the fsync. Generator and\n\
    broker share the machine.\n\n\
    CPU per message is the broker's processor time, in user and kernel space, per message that arrived. Other\n\
    programs on the machine affect it least.\n\n";

/// The lines printed for a load, as soon as it is measured.
pub(super) fn told(subjects: &[&str], row: &Row) -> String {
    let mut lines = format!("{}: {}\n", row.load.name, row.load.what);
    for (subject, cell) in subjects.iter().zip(&row.cells) {
        let said = match cell {
            Cell::NotFor => continue,
            Cell::Failed(reason) => format!("failed: {reason}"),
            Cell::Measured(values) => {
                let said = |(figure, value): &(Figure, f64)| {
                    format!("{} {}", figure.name(), figure.show(*value))
                };
                values.iter().map(said).collect::<Vec<_>>().join(", ")
            }
        };
        lines.push_str(&format!("  {subject:<10} {said}\n"));
    }
    lines
}

impl Report<'_> {
    fn rabbitmq(&self) -> Option<usize> {
        self.subjects.iter().position(|subject| *subject == "RabbitMQ")
    }

    /// The document.
    ///
    /// # Errors
    /// Never, since it is written to memory.
    pub(super) fn document(&self) -> Result<String> {
        let mut page = ABOUT.to_owned();
        let products: Vec<&str> = self.products.iter().flatten().map(String::as_str).collect();
        if self.subjects.contains(&"floor") {
            page.push_str(
                "The floor is a program that turns each publish into a delivery to the only consumer, without\n\
                 queues, confirms or rules: an upper bound for any broker on this machine.\n\n",
            );
        }
        self.write_machine(&mut page, &products)?;
        writeln!(
            page,
            "## Results\n\n![Messages per second](../{RATES_PLOT})\n\n![Processor time per message](../{CPU_PLOT})\n"
        )?;
        self.write_table(&mut page)?;
        self.write_failures(&mut page)?;
        Ok(page)
    }

    fn write_machine(&self, page: &mut String, products: &[&str]) -> Result<()> {
        let Machine { processors, model, memory_bytes, kernel, syncs_per_s, written_per_s } =
            self.machine;
        writeln!(page, "## Where\n\n| | |\n| --- | --- |")?;
        writeln!(
            page,
            "| Rounds | {}, of {} s where a load goes on for a time |",
            self.rounds, self.seconds
        )?;
        writeln!(page, "| Brokers | {} |", products.join(", "))?;
        writeln!(page, "| Processors | {processors} of {model} |")?;
        writeln!(page, "| Memory | {} GB |", digits(*memory_bytes as f64 / 1e9))?;
        writeln!(page, "| Kernel | Linux {kernel} |")?;
        writeln!(
            page,
            "| Disk | {} synced appends of 4 KiB per second (fdatasync), {} MB/s written sequentially and synced |\n",
            short(*syncs_per_s),
            digits(written_per_s / 1e6)
        )?;
        Ok(())
    }

    fn write_table(&self, page: &mut String) -> Result<()> {
        let rabbitmq = self.rabbitmq();
        let subjects = self.subjects.join(" | ");
        let ratio = if rabbitmq.is_some() { " better by |" } else { "" };
        let rules = " --- |".repeat(self.subjects.len() + usize::from(rabbitmq.is_some()));
        writeln!(page, "| Load | Figure | {subjects} |{ratio} Goal |\n| --- | --- |{rules} --- |")?;
        for row in self.rows {
            for (at, figure) in row.load.figures.iter().enumerate() {
                let name = if at == 0 { format!("`{}`", row.load.name) } else { String::new() };
                write!(page, "| {name} | {} |", figure.name())?;
                for cell in &row.cells {
                    let said = match (cell.value(*figure), cell) {
                        (Some(value), _) => figure.show(value),
                        (None, Cell::Failed(_)) => "failed".to_owned(),
                        (None, _) => NOTHING.to_owned(),
                    };
                    write!(page, " {said} |")?;
                }
                if let Some(rabbitmq) = rabbitmq {
                    write!(page, " {} |", better_by(row, *figure, rabbitmq))?;
                }
                let goals = row.load.goals.iter().filter(|goal| goal.figure == *figure);
                let goals: Vec<String> = goals.map(|goal| self.said(goal, row)).collect();
                writeln!(page, " {} |", goals.join("; "))?;
            }
        }
        writeln!(page, "\nWhat the loads do:\n\n| Load | |\n| --- | --- |")?;
        for row in self.rows {
            writeln!(page, "| `{}` | {} |", row.load.name, row.load.what)?;
        }
        Ok(())
    }

    /// A goal, and whether it is reached.
    fn said(&self, goal: &Goal, row: &Row) -> String {
        let bound = match goal.bound {
            Bound::AtLeast(least) => format!("\u{2265} {}", goal.figure.show(least)),
            Bound::Below(_) if matches!(goal.figure, Figure::Early | Figure::Doubled) => {
                "none".to_owned()
            }
            Bound::Below(most) => format!("< {}", goal.figure.show(most)),
            Bound::AsInLoad(name) => format!("as `{name}`"),
            Bound::AsRabbitmq => "as RabbitMQ".to_owned(),
        };
        match is_reached(goal, row, self.rows, self.rabbitmq()) {
            Some(true) => format!("{bound}: reached"),
            Some(false) => format!("{bound}: **missed**"),
            None => bound,
        }
    }

    fn write_failures(&self, page: &mut String) -> Result<()> {
        let mut reasons = Vec::new();
        for row in self.rows {
            for (subject, cell) in self.subjects.iter().zip(&row.cells) {
                if let Cell::Failed(reason) = cell {
                    let reason = reason.replace(['\n', '|'], " ");
                    reasons.push(format!("| `{}` | {subject} | {reason} |", row.load.name));
                }
            }
        }
        if !reasons.is_empty() {
            let reasons = reasons.join("\n");
            writeln!(page, "\nWhat failed:\n\n| Load | | |\n| --- | --- | --- |\n{reasons}")?;
        }
        Ok(())
    }

    /// The two plots: rates, and processor time.
    ///
    /// # Errors
    /// When they cannot be drawn.
    pub(super) fn plots(&self) -> Result<[String; 2]> {
        let groups = |wanted: &dyn Fn(Figure) -> bool| -> Vec<Group> {
            let group = |row: &Row| {
                let figure = row.load.figures.iter().copied().find(|figure| wanted(*figure))?;
                let bar = |cell: &Cell| cell.value(figure).map(|value| (value, figure.show(value)));
                let bars: Vec<_> = row.cells.iter().map(bar).collect();
                bars.iter().any(Option::is_some).then_some(Group { name: row.load.name, bars })
            };
            // At half of its own rate the rate of a broker is given.
            self.rows.iter().filter(|row| row.load.base().is_none()).filter_map(group).collect()
        };
        let rates = groups(&Figure::is_rate);
        let cpu = groups(&|figure| matches!(figure, Figure::Cpu | Figure::FillCpu));
        Ok([
            bars(
                "Messages per second, on a logarithmic scale (more is better)",
                self.subjects,
                &rates,
            )?,
            bars(
                "Broker's processor time for a message, on a logarithmic scale (less is better)",
                self.subjects,
                &cpu,
            )?,
        ])
    }
}

/// Ratio by which Leveret is better than RabbitMQ in a figure.
fn better_by(row: &Row, figure: Figure, rabbitmq: usize) -> String {
    if matches!(figure, Figure::Early | Figure::Doubled) {
        return String::new();
    }
    // At half of its own rate the rate of a broker is given.
    if figure.is_rate() && row.load.base().is_some() {
        return String::new();
    }
    match (row.value(0, figure), row.value(rabbitmq, figure)) {
        (Some(leveret), Some(other)) if leveret > 0.0 && other > 0.0 => {
            let ratio = if figure.is_rate() { leveret / other } else { other / leveret };
            format!("{}\u{d7}", digits(ratio))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::loads::Load;
    use super::*;

    fn row(name: &str, cells: Vec<Cell>) -> Row {
        Row { load: Load::named(name).unwrap(), cells }
    }

    fn rates(consumed: f64, cpu: f64) -> Cell {
        Cell::Measured(vec![(Figure::Consumed, consumed), (Figure::Cpu, cpu)])
    }

    fn rows() -> Vec<Row> {
        let early = vec![(Figure::LatenessP99, 20_000.0), (Figure::Early, 0.0)];
        vec![
            row("transient-16", vec![rates(2.1e6, 0.5), rates(5e4, 20.0), rates(3e6, 0.2)]),
            row("persistent-16", vec![rates(3e5, 1.0), Cell::Failed("a\nb".into()), Cell::NotFor]),
            row("expiry-burst", vec![Cell::Measured(early), Cell::NotFor, Cell::NotFor]),
        ]
    }

    fn report(rows: &[Row], read: impl Fn(&Report<'_>)) {
        let machine = Machine {
            processors: 2,
            model: "Some CPU".to_owned(),
            memory_bytes: 16_000_000_000,
            kernel: "6.1".to_owned(),
            syncs_per_s: 1_500.0,
            written_per_s: 900e6,
        };
        let products = [Some("Leveret 0.1.0".to_owned()), Some("RabbitMQ 4.3.1".to_owned()), None];
        read(&Report {
            machine: &machine,
            subjects: &["Leveret", "RabbitMQ", "floor"],
            products: &products,
            rounds: 3,
            seconds: 4.0,
            rows,
        });
    }

    #[test]
    fn the_document_has_figures_ratios_and_goals() {
        report(&rows(), |report| {
            let page = report.document().unwrap();
            for line in [
                "| Brokers | Leveret 0.1.0, RabbitMQ 4.3.1 |",
                "| Disk | 1.5k synced appends of 4 KiB per second (fdatasync), 900 MB/s written sequentially and synced |",
                "| Load | Figure | Leveret | RabbitMQ | floor | better by | Goal |",
                "| `transient-16` | messages/s | 2.1M | 50k | 3M | 42\u{d7} | \u{2265} 2M: reached |",
                "|  | CPU per message | 0.5 \u{b5}s | 20 \u{b5}s | 0.2 \u{b5}s | 40\u{d7} | < 0.4 \u{b5}s: **missed** |",
                "| `persistent-16` | messages/s | 300k | failed | \u{2013} |  | \u{2265} 600k: **missed** |",
                "|  | lateness p99 | 20 ms | \u{2013} | \u{2013} |  | < 25 ms: reached |",
                "|  | early | 0 | \u{2013} | \u{2013} |  | none: reached |",
                "| `persistent-16` | RabbitMQ | a b |",
            ] {
                assert!(page.lines().any(|found| found == line), "{line}\n{page}");
            }
        });
    }

    #[test]
    fn without_rabbitmq_there_is_nothing_to_be_better_than() {
        let rows = [row("idle", vec![Cell::Measured(vec![(Figure::Resident, 9.4e6)])])];
        report(&rows, |report| {
            let alone = Report { subjects: &["Leveret"], products: &[], ..*report };
            let page = alone.document().unwrap();
            assert!(page.contains("| Load | Figure | Leveret | Goal |\n"), "{page}");
            assert!(page.contains("| `idle` | resident memory | 9.4 MB | < 10 MB: reached |\n"));
            assert!(!page.contains("floor"), "{page}");
        });
    }

    #[test]
    fn plots_have_what_was_measured() {
        report(&rows(), |report| {
            let [rates, cpu] = report.plots().unwrap();
            assert!(rates.contains("2.1M") && rates.contains("persistent-16"), "{rates}");
            assert!(cpu.contains("0.5 \u{b5}s") && !cpu.contains("expiry-burst"), "{cpu}");
        });
    }

    #[test]
    fn report_has_a_line_for_each_subject() {
        let told = told(&["Leveret", "RabbitMQ", "floor"], &rows()[1]);
        let lines: Vec<&str> = told.lines().skip(1).collect();
        let leveret = "  Leveret    messages/s 300k, CPU per message 1 \u{b5}s";
        assert_eq!(lines, [leveret, "  RabbitMQ   failed: a", "b"]);
    }
}
