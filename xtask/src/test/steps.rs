//! The table of steps of `cargo xtask test`.
//!
//! A step is data; `schedule` decides when it begins. Of steps that may begin, the first of the table
//! does: cheap checks first, so that the usual mistakes show within seconds, then the release build, which
//! all suites wait for, and long suites before short ones. Every step has a time after which it counts as
//! hung: several times its duration on a slow machine with nothing built.

use std::time::Duration;

use crate::repository;

/// A check or a preparation of the test run, with a name people type.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: &'static str,
    /// Subject of the check, in a few words.
    pub(super) what: &'static str,
    pub(super) action: Action,
    /// Steps that run beside it.
    pub(super) lane: Lane,
    /// Things of the machine that one step at a time may use.
    pub(super) resources: &'static [Resource],
    /// Noun for its number of tests; `None` when the step is one check.
    pub(super) counts: Option<&'static str>,
    /// Steps that must end before it begins.
    pub(super) needs: &'static [&'static str],
    /// True if it checks nothing itself and runs only when another step needs it.
    pub(super) is_setup: bool,
    /// Longest duration of each program of the step.
    pub(super) time_max: Duration,
}

/// Steps that run beside each other, by what they wait for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Lane {
    /// The build that all suites wait for: one at a time, at the usual priority.
    Build,
    /// Keeps all processors busy: one at a time, at the lowest priority.
    Compile,
    /// Waits for the network and for the locks of package managers: one at a time.
    Fetch,
    /// Runs brokers and clients, which mostly wait: two at a time.
    Suite,
    /// Measures time or memory: nothing beside it.
    Alone,
}

/// A thing of the machine that a step fills up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Resource {
    /// `/dev/shm`: a full disk for fault runs, memory of browsers.
    SharedMemory,
    /// All processors: suites with many processes, whose clients starve beside each other.
    Processors,
}

/// The kinds of steps.
#[derive(Debug)]
pub(super) enum Action {
    /// `cargo` with these arguments succeeds.
    Cargo(&'static [&'static str]),
    /// `cargo` builds these packages in release.
    ReleaseBuild(&'static [&'static str]),
    /// `cargo` with these arguments succeeds, if its subcommand is installed.
    OptionalCargo {
        arguments: &'static [&'static str],
        /// Command that installs the subcommand.
        install: &'static str,
    },
    /// The workspace, its tests included, compiles without a warning of the compiler or of clippy.
    Lints,
    /// The Rust tests of the workspace pass.
    RustTests,
    /// The rules of taste hold.
    Tidy,
    /// The virtual environment holds what these lists of packages name.
    PythonPackages(&'static [&'static str]),
    /// A program in Python, given the release build and these arguments, finds no fault.
    Python { program: &'static str, arguments: &'static [&'static str] },
    /// The suite of pytest in this folder, or the part that the arguments select, passes against the release build.
    Pytest { folder: &'static str, arguments: &'static [&'static str] },
    /// The programs of the clients of other languages are built.
    InteropClients,
    /// Debian has installed what this list of packages names.
    DebianPackages(&'static str),
    /// No message costs more instructions and allocations than docs/instructions.md allows.
    Instructions,
    /// Packages made of the built programs install, upgrade and go, and the same programs give the same packages.
    Packages(&'static str),
    /// The files of this Debian package lie below the target folder, without it being installed.
    DebianFiles(&'static str),
    /// A program passes against a running release build, whose address it is given.
    AgainstBroker(&'static str),
}

/// A step without numbers or needs, for the table to vary.
pub(super) const PLAIN: Step = Step {
    name: "",
    what: "",
    action: Action::Tidy,
    lane: Lane::Compile,
    resources: &[],
    counts: None,
    needs: &[],
    is_setup: false,
    time_max: Duration::from_mins(20),
};

/// All steps.
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
        name: "build",
        what: "release build of leveret",
        lane: Lane::Build,
        action: Action::ReleaseBuild(repository::BROKER_PACKAGE),
        is_setup: true,
        time_max: Duration::from_mins(30),
        ..PLAIN
    },
    Step {
        name: "release-tools",
        what: "release build of leveretctl and leveret-perf, for other commands",
        lane: Lane::Build,
        action: Action::ReleaseBuild(repository::TOOL_PACKAGES),
        is_setup: true,
        time_max: Duration::from_mins(30),
        ..PLAIN
    },
    Step {
        name: "python",
        what: "Python environment of the black-box suites",
        lane: Lane::Fetch,
        action: Action::PythonPackages(&[
            "tests/blackbox/requirements.txt",
            "tests/hostile/requirements.txt",
            "tests/interop/requirements.txt",
            "tests/packages/requirements.txt",
            "tests/web/requirements.txt",
        ]),
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "valgrind",
        what: "valgrind, from Debian",
        lane: Lane::Fetch,
        action: Action::DebianPackages("crates/instructions/packages.txt"),
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "fuzz-packages",
        what: "a C++ compiler for libFuzzer, from Debian, for `cargo xtask fuzz`",
        lane: Lane::Fetch,
        action: Action::DebianPackages("fuzz/packages.txt"),
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "web-packages",
        what: "a browser, from Debian",
        lane: Lane::Fetch,
        action: Action::DebianPackages("tests/web/packages.txt"),
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "packages",
        what: "Java compiler and client from Debian",
        lane: Lane::Fetch,
        action: Action::DebianPackages("tests/java/packages.txt"),
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "admin-v1",
        what: "rabbitmqadmin v1, of a Debian package",
        lane: Lane::Fetch,
        action: Action::DebianFiles("rabbitmq-server"),
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "dist-packages",
        what: "programs that check packages and units, from Debian",
        lane: Lane::Fetch,
        action: Action::DebianPackages("tests/packages/packages.txt"),
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "interop-packages",
        what: "compilers and clients of many languages, from Debian",
        lane: Lane::Fetch,
        action: Action::DebianPackages("tests/interop/packages.txt"),
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "interop-clients",
        what: "programs of clients of other languages, and rabbitmqadmin v2",
        action: Action::InteropClients,
        is_setup: true,
        needs: &["python", "interop-packages"],
        time_max: Duration::from_mins(50),
        ..PLAIN
    },
    Step {
        name: "clippy",
        what: "lints, and the build of the tests and the tools",
        action: Action::Lints,
        time_max: Duration::from_mins(30),
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
        action: Action::RustTests,
        counts: Some("unit and property tests"),
        time_max: Duration::from_mins(30),
        ..PLAIN
    },
    Step {
        name: "sim",
        what: "a simulated cluster under faults, and whether its checks see sabotages",
        action: Action::Cargo(&[
            "run",
            "--profile",
            "sim",
            "--package",
            "leveret-sim",
            "--",
            "--check",
            "--seeds",
            "60",
        ]),
        time_max: Duration::from_mins(30),
        ..PLAIN
    },
    Step {
        name: "interop",
        what: "clients of other languages, each through all scenarios",
        lane: Lane::Suite,
        action: Action::Python { program: "tests/interop/matrix.py", arguments: &[] },
        counts: Some("scenarios of clients"),
        needs: &["build", "python", "interop-packages", "interop-clients"],
        ..PLAIN
    },
    Step {
        name: "blackbox",
        what: "behaviour, seen by a client",
        lane: Lane::Suite,
        resources: &[Resource::Processors],
        action: Action::Pytest { folder: "tests/blackbox", arguments: &["-m", "not tools"] },
        counts: Some("black-box tests"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "hostile",
        what: "clients that lie, stall and vanish",
        lane: Lane::Suite,
        action: Action::Pytest { folder: "tests/hostile", arguments: &[] },
        counts: Some("hostile-client tests"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "web",
        what: "the web page, in a browser",
        lane: Lane::Suite,
        resources: &[Resource::SharedMemory, Resource::Processors],
        action: Action::Pytest { folder: "tests/web", arguments: &[] },
        counts: Some("browser tests"),
        needs: &["build", "python", "web-packages"],
        ..PLAIN
    },
    Step {
        name: "flood",
        what: "crowds of clients, and what they cost",
        lane: Lane::Suite,
        action: Action::Python { program: "tests/flood/flood.py", arguments: &["--small"] },
        counts: Some("bounds of floods"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "faults",
        what: "a broker whose disk fails, is full, or is damaged",
        lane: Lane::Suite,
        resources: &[Resource::SharedMemory],
        action: Action::Pytest { folder: "tests/faults", arguments: &[] },
        counts: Some("fault runs"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "crash",
        what: "random kills of a broker under load",
        lane: Lane::Suite,
        action: Action::Python {
            program: "tests/crash/crashloop.py",
            arguments: &["--minutes", "1", "--delays"],
        },
        counts: Some("kills without loss"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "cluster-crash",
        what: "random kills of nodes of a cluster under load",
        lane: Lane::Suite,
        action: Action::Python {
            program: "tests/crash/clusterloop.py",
            arguments: &["--minutes", "1", "--delays", "--flood", "--members", "0.2"],
        },
        counts: Some("kills without loss"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "netsplit",
        what: "nodes of a cluster that are parted from each other under load",
        lane: Lane::Suite,
        action: Action::Python {
            program: "tests/netsplit/netsplit.py",
            arguments: &["--minutes", "0.5"],
        },
        counts: Some("runs of partitions without loss"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "netsplit-judges",
        what: "the judges of partitions, shown forged histories, and the proxies",
        lane: Lane::Suite,
        action: Action::Pytest { folder: "tests/netsplit", arguments: &[] },
        counts: Some("tests of judges and proxies"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "java",
        what: "the Java client",
        lane: Lane::Suite,
        action: Action::AgainstBroker("tests/java/run"),
        counts: Some("Java checks"),
        needs: &["build", "packages"],
        ..PLAIN
    },
    Step {
        name: "redrive",
        what: "random kills of a broker that redrives",
        lane: Lane::Suite,
        action: Action::Python {
            program: "tests/crash/redriveloop.py",
            arguments: &["--kills", "15", "--messages", "3000"],
        },
        counts: Some("kills of redrives without loss"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "backup",
        what: "random kills of a broker that is backed up, and restores",
        lane: Lane::Suite,
        action: Action::Python {
            program: "tests/crash/backuploop.py",
            arguments: &["--kills", "10"],
        },
        counts: Some("kills during backups without loss"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "tools",
        what: "leveretctl and leveret-perf, and the examples of the documentation",
        lane: Lane::Suite,
        action: Action::Pytest { folder: "tests/blackbox", arguments: &["-m", "tools"] },
        counts: Some("tests of the tools"),
        needs: &["build", "python", "clippy"],
        ..PLAIN
    },
    Step {
        name: "internal",
        what: "dead-letter chains, fan-outs and cycles, under alarms and kills",
        lane: Lane::Suite,
        resources: &[Resource::SharedMemory],
        action: Action::Pytest { folder: "tests/internal_work", arguments: &[] },
        counts: Some("runs of internal work"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "dist",
        what: "packages: their bytes, installation, upgrade and removal, the unit for systemd, the container image",
        lane: Lane::Suite,
        action: Action::Packages("tests/packages"),
        counts: Some("tests of packages"),
        needs: &["build", "python", "dist-packages", "clippy"],
        ..PLAIN
    },
    Step {
        name: "admin",
        what: "rabbitmqadmin of both generations, unmodified",
        lane: Lane::Suite,
        action: Action::Pytest { folder: "tests/rabbitmqadmin", arguments: &[] },
        counts: Some("rabbitmqadmin runs"),
        needs: &["build", "python", "admin-v1", "interop-clients"],
        ..PLAIN
    },
    Step {
        name: "instructions",
        what: "instructions and allocations for one message",
        lane: Lane::Suite,
        action: Action::Instructions,
        counts: Some("counts of instructions"),
        needs: &["build", "valgrind"],
        ..PLAIN
    },
];
