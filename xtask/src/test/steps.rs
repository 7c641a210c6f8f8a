//! The table of steps: what `cargo xtask test` does, in order.
//!
//! A step is data. Cheap steps come first, so that the usual mistakes are told within seconds.
//! Every step has a time after which it counts as hung: several times what it takes on a slow
//! machine with nothing built.

use std::time::Duration;

/// Something that can fail, with a name people type.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: &'static str,
    /// What it checks or prepares, in a few words.
    pub(super) what: &'static str,
    pub(super) action: Action,
    /// What its numbers count; `None` when it has none.
    pub(super) counts: Option<&'static str>,
    /// Steps of setup that must run before it.
    pub(super) needs: &'static [&'static str],
    /// Whether it checks nothing itself and runs only when another step needs it.
    pub(super) is_setup: bool,
    /// Each program of the step may run so long.
    pub(super) time_max: Duration,
}

/// The kinds of steps.
#[derive(Debug)]
pub(super) enum Action {
    /// `cargo` with these arguments succeeds.
    Cargo(&'static [&'static str]),
    /// `cargo` with these arguments succeeds, if its subcommand is installed.
    OptionalCargo {
        arguments: &'static [&'static str],
        /// How to install the subcommand.
        install: &'static str,
    },
    /// `cargo` with these arguments runs Rust tests, and all pass.
    RustTests(&'static [&'static str]),
    /// The rules of taste hold.
    Tidy,
    /// The virtual environment holds what these lists of packages name.
    PythonPackages(&'static [&'static str]),
    /// This program in Python, given the release build and these arguments, finds no fault.
    Python { program: &'static str, arguments: &'static [&'static str] },
    /// The suite of pytest in this folder passes against the release build.
    Pytest(&'static str),
    /// Debian has installed what this list of packages names.
    DebianPackages(&'static str),
    /// cargo has installed this version of this package below the target folder.
    CargoTool { package: &'static str, version: &'static str },
    /// No message costs more instructions and allocations than is written down.
    Instructions,
    /// Input that a fuzzer makes up finds nothing in any target.
    Fuzz,
    /// The files of this Debian package lie below the target folder, without it being installed.
    DebianFiles(&'static str),
    /// This program passes against a running release build, whose address it is given.
    AgainstBroker(&'static str),
}

/// A step without numbers or needs, for the table to vary.
const PLAIN: Step = Step {
    name: "",
    what: "",
    action: Action::Tidy,
    counts: None,
    needs: &[],
    is_setup: false,
    time_max: Duration::from_mins(20),
};

/// All steps, in the order they run.
pub(super) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        what: "formatting",
        action: Action::Cargo(&["fmt", "--all", "--check"]),
        time_max: Duration::from_mins(2),
        ..PLAIN
    },
    Step { name: "tidy", what: "rules of taste", action: Action::Tidy, ..PLAIN },
    Step {
        name: "clippy",
        what: "lints",
        action: Action::Cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "--deny",
            "warnings",
        ]),
        ..PLAIN
    },
    Step {
        name: "deny",
        what: "licences, advisories and sources of dependencies",
        action: Action::OptionalCargo {
            arguments: &["deny", "check"],
            install: "cargo install cargo-deny --locked",
        },
        time_max: Duration::from_mins(5),
        ..PLAIN
    },
    Step {
        name: "unit",
        what: "unit, script, dialogue and property tests",
        action: Action::RustTests(&["test", "--workspace", "--no-fail-fast"]),
        counts: Some("unit and property tests"),
        time_max: Duration::from_mins(30),
        ..PLAIN
    },
    Step {
        name: "fuzzer",
        what: "cargo-fuzz, from its registry",
        action: Action::CargoTool { package: "cargo-fuzz", version: "0.13.1" },
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "fuzz-packages",
        what: "a C++ compiler for libFuzzer, from Debian",
        action: Action::DebianPackages("fuzz/packages.txt"),
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "fuzz",
        what: "input that a fuzzer makes up",
        action: Action::Fuzz,
        counts: Some("executions of fuzz targets"),
        needs: &["fuzzer", "fuzz-packages"],
        ..PLAIN
    },
    Step {
        name: "build",
        what: "release build of leveret, leveretctl and leveret-perf",
        action: Action::Cargo(&[
            "build",
            "--release",
            "--package",
            "leveret",
            "--package",
            "leveretctl",
            "--package",
            "leveret-perf",
        ]),
        is_setup: true,
        time_max: Duration::from_mins(30),
        ..PLAIN
    },
    Step {
        name: "valgrind",
        what: "what counts instructions, from Debian",
        action: Action::DebianPackages("crates/server/examples/instructions/packages.txt"),
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "instructions",
        what: "instructions and allocations for one message",
        action: Action::Instructions,
        counts: Some("counts of instructions"),
        needs: &["build", "valgrind"],
        ..PLAIN
    },
    Step {
        name: "python",
        what: "Python environment of the black-box suites",
        action: Action::PythonPackages(&[
            "tests/blackbox/requirements.txt",
            "tests/hostile/requirements.txt",
            "tests/interop/requirements.txt",
            "tests/web/requirements.txt",
        ]),
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "blackbox",
        what: "behaviour, seen by a client",
        action: Action::Pytest("tests/blackbox"),
        counts: Some("black-box tests"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "hostile",
        what: "clients that lie, stall and vanish",
        action: Action::Pytest("tests/hostile"),
        counts: Some("hostile-client tests"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "web-packages",
        what: "a browser, from Debian",
        action: Action::DebianPackages("tests/web/packages.txt"),
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "web",
        what: "the web page, in a browser",
        action: Action::Pytest("tests/web"),
        counts: Some("browser tests"),
        needs: &["build", "python", "web-packages"],
        ..PLAIN
    },
    Step {
        name: "crash",
        what: "a broker that is killed again and again",
        action: Action::Python {
            program: "tests/crash/crashloop.py",
            arguments: &["--minutes", "1"],
        },
        counts: Some("kills without loss"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "redrive",
        what: "a broker that is killed while it redrives",
        action: Action::Python {
            program: "tests/crash/redriveloop.py",
            arguments: &["--kills", "15", "--messages", "3000"],
        },
        counts: Some("kills of redrives without loss"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "faults",
        what: "a broker whose disk fails, is full, or is damaged",
        action: Action::Pytest("tests/faults"),
        counts: Some("fault runs"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "internal",
        what: "work that the broker makes by itself: chains, fan-outs, cycles, under alarms and kills",
        action: Action::Pytest("tests/internal_work"),
        counts: Some("runs of internal work"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "flood",
        what: "more clients than anybody wants",
        action: Action::Python { program: "tests/flood/flood.py", arguments: &["--small"] },
        counts: Some("bounds of floods"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "packages",
        what: "Java compiler and client from Debian",
        action: Action::DebianPackages("tests/java/packages.txt"),
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "java",
        what: "the Java client",
        action: Action::AgainstBroker("tests/java/run"),
        counts: Some("Java checks"),
        needs: &["build", "packages"],
        ..PLAIN
    },
    Step {
        name: "admin-v1",
        what: "rabbitmqadmin v1, of a Debian package",
        action: Action::DebianFiles("rabbitmq-server"),
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "admin-v2",
        what: "rabbitmqadmin v2, from its registry",
        action: Action::CargoTool { package: "rabbitmqadmin", version: "2.35.0" },
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "admin",
        what: "rabbitmqadmin of both generations, unmodified",
        action: Action::Pytest("tests/rabbitmqadmin"),
        counts: Some("rabbitmqadmin runs"),
        needs: &["build", "python", "admin-v1", "admin-v2"],
        ..PLAIN
    },
    Step {
        name: "interop-packages",
        what: "clients of many languages, and these, from Debian",
        action: Action::DebianPackages("tests/interop/packages.txt"),
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "interop",
        what: "the clients that people use, each through all scenarios",
        action: Action::Python { program: "tests/interop/matrix.py", arguments: &[] },
        counts: Some("scenarios of clients"),
        needs: &["build", "python", "interop-packages"],
        ..PLAIN
    },
];
