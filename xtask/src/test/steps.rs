//! The parts of a step of `cargo xtask test`.
//!
//! A step is data: `table` has all of them, `schedule` decides when one begins, `actions` runs it.

/// A check or a preparation of the test run, with a name people type.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: &'static str,
    /// Subject of the check, in a few words.
    pub(super) what: &'static str,
    pub(super) action: Action,
    /// Weight, which decides what runs beside the step.
    pub(super) lane: Lane,
    /// Things of the machine that one step at a time may use.
    pub(super) resources: &'static [Resource],
    /// Noun for its number of tests; `None` when the step is one check.
    pub(super) counts: Option<&'static str>,
    /// Steps that must end before it begins.
    pub(super) needs: &'static [&'static str],
    /// True if it checks nothing itself and runs only when another step needs it.
    pub(super) is_setup: bool,
}

impl Step {
    /// True if single tests of the step can be chosen.
    pub(super) fn has_single_tests(&self) -> bool {
        matches!(self.action, Action::RustTests | Action::Pytest { .. } | Action::Packages(_))
    }

    /// The folder of a suite of pytest.
    pub(super) const fn folder(&self) -> Option<&'static str> {
        if let Action::Pytest { folder, .. } = self.action { Some(folder) } else { None }
    }
}

/// The weight of a step: what it keeps busy, and so what may run beside it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Lane {
    /// Compiles, which keeps all processors busy: two at a time, so that one goes on while the other links.
    Compile,
    /// Waits for the network and for the locks of package managers: one at a time.
    Fetch,
    /// Runs programs whose result no busy processor changes: two at a time, together with those of `Timed`.
    Suite,
    /// Runs clusters or browsers, or has bounds of time: nothing that compiles runs beside it. Three at a time.
    Timed,
    /// Measures time or memory: nothing beside it.
    Alone,
}

/// A thing of the machine that a step fills up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Resource {
    /// `/dev/shm`: a full disk.
    SharedMemory,
    /// All processors: suites with many processes, whose clients starve beside each other.
    Processors,
}

/// The kinds of steps.
#[derive(Debug)]
pub(super) enum Action {
    /// `cargo` with these arguments succeeds.
    Cargo(&'static [&'static str]),
    /// The programs that the suites test are built.
    SuiteBuild,
    /// The broker and its tools are built in release.
    ReleaseBuild,
    /// The workspace, its tests included, compiles without a warning of the compiler or of clippy.
    Lints,
    /// The Rust tests of the workspace pass.
    RustTests,
    /// The rules of taste hold.
    Tidy,
    /// The virtual environment holds what these lists of packages name.
    PythonPackages(&'static [&'static str]),
    /// Files in Python use the names that they import, and every suite of pytest can be read.
    PythonLints,
    /// A program in Python, given the broker of the step `build` and these arguments, finds no fault.
    Python { program: &'static str, arguments: &'static [&'static str] },
    /// The suite of pytest in this folder, or the part that the arguments select, passes against the broker of the step
    /// `build`.
    Pytest { folder: &'static str, arguments: &'static [&'static str] },
    /// The programs of the clients of other languages are built.
    InteropClients,
    /// Debian has installed what this list of packages names.
    DebianPackages(&'static str),
    /// The program that counts instructions is built.
    InstructionsBuild,
    /// No message costs more instructions and allocations than docs/internals/instructions.md allows.
    Instructions,
    /// The simulator keeps its checks, given these arguments.
    Simulator(&'static [&'static str]),
    /// Packages made of the built programs install, upgrade and go, and the same programs give the same packages.
    Packages(&'static str),
    /// The files of this Debian package lie below the target folder, without it being installed.
    DebianFiles(&'static str),
    /// A program passes against a running broker, whose address it is given.
    AgainstBroker(&'static str),
}

/// A step without numbers or needs, for tables to vary.
pub(super) const PLAIN: Step = Step {
    name: "",
    what: "",
    action: Action::Tidy,
    lane: Lane::Compile,
    resources: &[],
    counts: None,
    needs: &[],
    is_setup: false,
};
