//! The table of steps of `cargo xtask test`.
//!
//! Of steps that may begin, the first of the table does: cheap checks first, so that the usual mistakes show within
//! seconds, then what compiles, which all suites with clusters, browsers or bounds of time wait for, and long suites
//! before short ones.

use super::steps::{Action, Lane, PLAIN, Resource, Step};

/// All steps.
pub(super) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        what: "formatting",
        lane: Lane::Suite,
        action: Action::Cargo(&["fmt", "--all", "--check"]),
        ..PLAIN
    },
    Step {
        name: "tidy",
        what: "rules of taste, and licences and sources of dependencies",
        lane: Lane::Suite,
        action: Action::Tidy,
        ..PLAIN
    },
    Step {
        name: "build",
        what: "optimised build of leveret and the simulator, with assertions of the core",
        action: Action::SuiteBuild,
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "release",
        what: "release build of leveret, then of leveretctl and leveret-perf, for other commands",
        action: Action::ReleaseBuild,
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "python",
        what: "Python environment of the black-box suites",
        lane: Lane::Fetch,
        action: Action::PythonPackages(&[
            "tests/requirements.txt",
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
        name: "python-lints",
        what: "names that no file in Python has or needs, and whether every test can be read",
        lane: Lane::Suite,
        action: Action::PythonLints,
        needs: &["python"],
        ..PLAIN
    },
    Step {
        name: "interop-clients",
        what: "programs of clients of other languages, and rabbitmqadmin v2",
        action: Action::InteropClients,
        is_setup: true,
        needs: &["python", "interop-packages"],
        ..PLAIN
    },
    Step {
        name: "clippy",
        what: "lints, and the build of the tests and the tools",
        action: Action::Lints,
        ..PLAIN
    },
    Step {
        name: "instructions-build",
        what: "release build of the program that counts instructions",
        action: Action::InstructionsBuild,
        is_setup: true,
        ..PLAIN
    },
    Step {
        name: "unit",
        what: "unit, script, dialogue and property tests",
        lane: Lane::Suite,
        action: Action::RustTests,
        needs: &["clippy"],
        counts: Some("unit and property tests"),
        ..PLAIN
    },
    Step {
        name: "sim",
        what: "a simulated cluster under faults, and whether its checks see sabotages",
        lane: Lane::Suite,
        action: Action::Simulator(&["--check", "--seeds", "30"]),
        needs: &["build"],
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
        needs: &["instructions-build", "valgrind"],
        ..PLAIN
    },
    Step {
        name: "faults",
        what: "a broker whose disk fails, is full, or is damaged",
        lane: Lane::Timed,
        resources: &[Resource::SharedMemory],
        action: Action::Pytest { folder: "tests/faults", arguments: &[] },
        counts: Some("fault runs"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "web",
        what: "the web page, in a browser",
        lane: Lane::Timed,
        resources: &[Resource::Processors],
        action: Action::Pytest { folder: "tests/web", arguments: &[] },
        counts: Some("browser tests"),
        needs: &["build", "python", "web-packages"],
        ..PLAIN
    },
    Step {
        name: "hostile",
        what: "clients that lie, stall and vanish",
        lane: Lane::Timed,
        action: Action::Pytest { folder: "tests/hostile", arguments: &[] },
        counts: Some("hostile-client tests"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "blackbox",
        what: "behaviour, seen by a client",
        lane: Lane::Timed,
        resources: &[Resource::Processors],
        action: Action::Pytest { folder: "tests/blackbox", arguments: &["-m", "not tools"] },
        counts: Some("black-box tests"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "tools",
        what: "leveretctl and leveret-perf, and the examples of the documentation",
        lane: Lane::Timed,
        action: Action::Pytest { folder: "tests/blackbox", arguments: &["-m", "tools"] },
        counts: Some("tests of the tools"),
        needs: &["build", "python", "clippy"],
        ..PLAIN
    },
    Step {
        name: "cluster-crash",
        what: "random kills of nodes of a cluster under load",
        lane: Lane::Timed,
        action: Action::Python {
            program: "tests/crash/clusterloop.py",
            arguments: &["--kills", "12", "--delays", "--flood", "--members", "0.2"],
        },
        counts: Some("kills without loss"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "netsplit",
        what: "nodes of a cluster that are parted from each other under load",
        lane: Lane::Timed,
        action: Action::Python {
            program: "tests/netsplit/netsplit.py",
            arguments: &["--runs", "1"],
        },
        counts: Some("runs of partitions without loss"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "flood",
        what: "crowds of clients, and what they cost",
        lane: Lane::Timed,
        action: Action::Python { program: "tests/flood/flood.py", arguments: &["--small"] },
        counts: Some("bounds of floods"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "interop",
        what: "clients of other languages, each through all scenarios",
        lane: Lane::Timed,
        action: Action::Python { program: "tests/interop/matrix.py", arguments: &[] },
        counts: Some("scenarios of clients"),
        needs: &["build", "python", "interop-packages", "interop-clients"],
        ..PLAIN
    },
    Step {
        name: "crash",
        what: "random kills of a broker under load",
        lane: Lane::Timed,
        action: Action::Python {
            program: "tests/crash/crashloop.py",
            arguments: &["--kills", "16", "--delays"],
        },
        counts: Some("kills without loss"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "redrive",
        what: "random kills of a broker that redrives",
        lane: Lane::Timed,
        action: Action::Python {
            program: "tests/crash/redriveloop.py",
            arguments: &["--kills", "6", "--messages", "3000"],
        },
        counts: Some("kills of redrives without loss"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "internal",
        what: "dead-letter chains, fan-outs and cycles, under alarms and kills",
        lane: Lane::Timed,
        resources: &[Resource::SharedMemory],
        action: Action::Pytest { folder: "tests/internal_work", arguments: &[] },
        counts: Some("runs of internal work"),
        needs: &["build", "python"],
        ..PLAIN
    },
    Step {
        name: "backup",
        what: "random kills of a broker that is backed up, and restores",
        lane: Lane::Timed,
        action: Action::Python {
            program: "tests/crash/backuploop.py",
            arguments: &["--kills", "5"],
        },
        counts: Some("kills during backups without loss"),
        needs: &["build", "python"],
        ..PLAIN
    },
];
