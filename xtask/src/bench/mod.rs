//! `cargo xtask bench`: Leveret, RabbitMQ and the floor under the same loads, in turn, in one run.
//!
//! Rates depend on the machine and on who else uses it; ratios and processor time much less. So all
//! are measured together, and the document says on what. Loads are a table in `loads`, who is measured is
//! in `subjects`; `rounds` measures, `report` prints.

mod criterion;
mod figures;
mod loads;
mod machine;
mod plot;
mod report;
mod rounds;
mod subjects;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::builder::PossibleValuesParser;

use self::loads::LOADS;
use self::machine::Machine;
use self::report::{CPU_PLOT, RATES_PLOT, Report};
use self::rounds::{Bench, Cell, Row};
use self::subjects::{Kind, Subject};
use crate::{process, repository, test};

/// Folder of the document, and the document in it.
const DOCUMENTS: &str = "docs";
const DOCUMENT: &str = "internals/benchmarks.md";

/// Options of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Run only these loads, and those whose rates they need
    #[arg(long, value_name = "LOAD", value_delimiter = ',', value_parser = load_names())]
    only: Vec<String>,

    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Seconds of every load that goes on for a while
    #[arg(long, value_name = "S", default_value_t = 4.0, value_parser = seconds)]
    seconds: f64,

    /// AMQP address of a `RabbitMQ` that runs on this machine, with nothing of value in it
    #[arg(long, value_name = "HOST:PORT")]
    rabbitmq: Option<String>,

    /// A program that is given ADDR:PORT, listens there and turns each publish into a delivery to the only
    /// consumer
    #[arg(long, value_name = "PROGRAM")]
    floor: Option<PathBuf>,

    /// Another build of leveret, to compare with
    #[arg(long, value_name = "BINARY")]
    baseline: Option<PathBuf>,

    /// Write docs/internals/benchmarks.md
    #[arg(long)]
    report: bool,

    /// Show the loads and end
    #[arg(long)]
    list: bool,

    /// Run the benchmarks of parts of the broker instead, or those whose name contains this
    #[arg(long, value_name = "FILTER", num_args = 0..=1, default_missing_value = "", conflicts_with_all =
        ["only", "rounds", "seconds", "rabbitmq", "floor", "baseline", "report", "list"])]
    criterion: Option<String>,
}

fn load_names() -> PossibleValuesParser {
    PossibleValuesParser::new(LOADS.iter().map(|load| load.name))
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "expected 0.1 to 3600 seconds".to_owned())
}

/// Builds, measures and reports.
///
/// # Errors
/// When something cannot be built or found, a load fails, or the user interrupts.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(filter) = &options.criterion {
        return criterion::run(filter);
    }
    let loads = loads::selection(&options.only);
    if options.list {
        for load in loads {
            println!("{:<18} {}", load.name, load.what);
        }
        return Ok(());
    }
    test::set_up(&["release"])?;
    process::watch_for_interrupts()?;
    let target = repository::target_folder()?;
    let folder = target.join("xtask").join("bench");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let machine = Machine::this(&folder)?;
    let subjects = subjects(options, &target)?;
    let names: Vec<&'static str> = subjects.iter().map(|subject| subject.name).collect();
    let mut bench = Bench {
        perf: target.join("release").join("leveret-perf"),
        folder,
        rounds: options.rounds,
        seconds: options.seconds,
        products: vec![None; subjects.len()],
        subjects,
    };
    let mut rows: Vec<Row> = Vec::new();
    for load in loads {
        let row = bench.measure(load, &rows)?;
        print!("{}", report::told(&names, &row));
        rows.push(row);
    }
    if options.report {
        let report = Report {
            machine: &machine,
            subjects: &names,
            products: &bench.products,
            rounds: options.rounds,
            seconds: options.seconds,
            rows: &rows,
        };
        write(&report, &repository::root().join(DOCUMENTS))?;
    }
    let has_failed = |row: &&Row| row.cells.iter().any(|cell| matches!(cell, Cell::Failed(_)));
    let failed: Vec<&str> = rows.iter().filter(has_failed).map(|row| row.load.name).collect();
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Subjects to measure, Leveret first.
fn subjects(options: &Options, target: &Path) -> Result<Vec<Subject>> {
    let leveret = |name, binary| Subject { name, kind: Kind::Leveret(binary) };
    let program = |path: &Path| {
        fs::canonicalize(path).with_context(|| format!("there is no {}", path.display()))
    };
    let mut subjects = vec![leveret("Leveret", target.join("release").join("leveret"))];
    if let Some(binary) = &options.baseline {
        subjects.push(leveret("baseline", program(binary)?));
    }
    if let Some(address) = &options.rabbitmq {
        subjects.push(Subject::rabbitmq(address)?);
    }
    if let Some(path) = &options.floor {
        subjects.push(Subject { name: "floor", kind: Kind::Floor(program(path)?) });
    }
    Ok(subjects)
}

fn write(report: &Report<'_>, folder: &Path) -> Result<()> {
    let [rates, cpu] = report.plots()?;
    for (file, text) in [(DOCUMENT, report.document()?), (RATES_PLOT, rates), (CPU_PLOT, cpu)] {
        let path = folder.join(file);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        }
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        println!("written: {}", path.display());
    }
    Ok(())
}
