//! A command: its name, its words and options, and its function.

use std::io::Write;
use std::time::Duration;

use crate::arguments::{Parsed, Switch};
use crate::columns::{self, Column};
use crate::failure::Failure;
use crate::format::{Formatter, Output};
use crate::http::ANSWER_TIMEOUT;
use crate::node::Node;
use crate::printable::in_line;
use crate::tool::Tool;

/// A call of a command.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The tool that was called.
    pub(crate) tool: Tool,
    /// The words behind the command's name.
    pub(crate) words: &'a [String],
    /// The options.
    pub(crate) options: &'a Parsed,
    /// The node to operate.
    pub(crate) node: &'a Node,
    /// Finds the node again: after a start it may have other ports and another token.
    pub(crate) find: &'a dyn Fn() -> Result<Node, Failure>,
    /// Suppresses everything but the output.
    pub(crate) is_quiet: bool,
}

impl Call<'_> {
    /// The word at this position; empty if there are fewer, which the number of words rules out.
    pub(crate) fn word(&self, at: usize) -> &str {
        self.words.get(at).map(String::as_str).unwrap_or_default()
    }

    /// The vhost in the options.
    pub(crate) fn vhost(&self) -> &str {
        self.options.text("vhost").unwrap_or("/")
    }

    /// Prints the progress of a long command, in one line.
    pub(crate) fn say(&self, text: &str) {
        if !self.is_quiet {
            let mut out = std::io::stdout();
            // A closed stream is no error: its reader wants no more output.
            let _ = writeln!(out, "{}", in_line(text)).and_then(|()| out.flush());
        }
    }

    /// Prints a warning on standard error, in one line.
    pub(crate) fn warn(&self, text: &str) {
        // A closed stream is no error.
        let _ = writeln!(std::io::stderr(), "{}", in_line(text));
    }

    /// True if a flag is given.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.options.flag(flag) == Some(true)
    }
}

/// A chapter of the list of commands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Section {
    Help,
    Nodes,
    Cluster,
    Users,
    AccessControl,
    Monitoring,
    Parameters,
    Policies,
    VirtualHosts,
    Queues,
    Operations,
    FeatureFlags,
    Configuration,
    Definitions,
    Plugins,
    Upgrade,
    Other,
}

impl Section {
    /// Headline of the section.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Help => "Help",
            Self::Nodes => "Nodes",
            Self::Cluster => "Cluster",
            Self::Users => "Users",
            Self::AccessControl => "Access Control",
            Self::Monitoring => "Monitoring, observability and health checks",
            Self::Parameters => "Parameters",
            Self::Policies => "Policies",
            Self::VirtualHosts => "Virtual hosts",
            Self::Queues => "Queues",
            Self::Operations => "Operations",
            Self::FeatureFlags => "Feature flags",
            Self::Configuration => "Configuration and Environment",
            Self::Definitions => "Definitions",
            Self::Plugins => "Plugin Management",
            Self::Upgrade => "Upgrade",
            Self::Other => "Other",
        }
    }
}

/// Tools that have a command, a bit for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tools(u8);

impl Tools {
    /// Commands of `rabbitmqctl`.
    pub(crate) const CTL: Self = Self(1);
    /// Commands of `rabbitmq-diagnostics`.
    pub(crate) const DIAGNOSTICS: Self = Self(1 << 1);
    /// Commands of `rabbitmq-plugins`.
    pub(crate) const PLUGINS: Self = Self(1 << 2);
    /// Commands of `rabbitmq-queues`.
    pub(crate) const QUEUES: Self = Self(1 << 3);
    /// Commands of `rabbitmq-streams`.
    pub(crate) const STREAMS: Self = Self(1 << 4);
    /// Commands of `rabbitmq-upgrade`.
    pub(crate) const UPGRADE: Self = Self(1 << 5);
    /// Commands of all tools.
    pub(crate) const ALL: Self = Self((1 << 6) - 1);

    const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// True if a tool has the command. `leveretctl` has those of all tools but `rabbitmq-plugins`, whose names say nothing
    /// without the name of the tool.
    pub(crate) const fn has(self, tool: Tool) -> bool {
        let meant = match tool {
            Tool::Leveretctl => Self(Self::ALL.0 & !Self::PLUGINS.0),
            Tool::Rabbitmqctl => Self::CTL,
            Tool::Diagnostics => Self::DIAGNOSTICS,
            Tool::Plugins => Self::PLUGINS,
            Tool::Queues => Self::QUEUES,
            Tool::Streams => Self::STREAMS,
            Tool::Upgrade => Self::UPGRADE,
        };
        self.0 & meant.0 != 0
    }
}

/// A command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    /// One word, or two for a command of a family.
    pub(crate) name: &'static str,
    pub(crate) section: Section,
    pub(crate) tools: Tools,
    /// Usage, behind the name of the tool and the options of all commands.
    pub(crate) usage: &'static str,
    /// Options of Leveret's own, which only the usage of `leveretctl` shows; empty if there are none.
    pub(crate) own_options: &'static str,
    /// Summary in one line.
    pub(crate) about: &'static str,
    /// Smallest and largest number of words.
    pub(crate) words: (usize, usize),
    /// Options of this command.
    pub(crate) switches: &'static [Switch],
    /// The columns that the words name; empty if the words are no columns.
    pub(crate) columns: &'static [Column],
    /// Default format of the output.
    pub(crate) formatter: Formatter,
    /// Banner before the output, unless `--quiet` is given.
    pub(crate) banner: fn(&Call<'_>) -> String,
    /// Check of words and options that needs no node.
    pub(crate) check: fn(&Call<'_>) -> Result<(), Failure>,
    pub(crate) run: fn(&Call<'_>) -> Result<Output, Failure>,
    /// True if the banner is printed before the command runs, because it may take long.
    pub(crate) waits: bool,
    /// True if the command waits for the start of a node, which may have begun a moment ago.
    pub(crate) waits_for_start: bool,
    /// True if an answer may take as long as there is much to do: it has no time limit unless one is given.
    pub(crate) is_slow: bool,
}

impl Command {
    /// A command of `rabbitmqctl` without words, options and banner.
    pub(crate) const fn new(
        section: Section,
        name: &'static str,
        usage: &'static str,
        about: &'static str,
        run: fn(&Call<'_>) -> Result<Output, Failure>,
    ) -> Self {
        Self {
            name,
            section,
            tools: Tools::CTL,
            usage,
            own_options: "",
            about,
            words: (0, 0),
            switches: &[],
            columns: &[],
            formatter: Formatter::Table,
            banner: |_| String::new(),
            check: |_| Ok(()),
            run,
            waits: false,
            waits_for_start: false,
            is_slow: false,
        }
    }

    /// The words that its name is made of.
    pub(crate) fn name_words(&self) -> impl Iterator<Item = &'static str> {
        self.name.split(' ')
    }

    pub(crate) const fn words(self, min: usize, max: usize) -> Self {
        Self { words: (min, max), ..self }
    }

    pub(crate) const fn switches(self, switches: &'static [Switch]) -> Self {
        Self { switches, ..self }
    }

    /// The words name some of these columns.
    pub(crate) const fn columns(self, columns: &'static [Column]) -> Self {
        Self { columns, ..self }
    }

    /// Checks words and options, without the node.
    ///
    /// # Errors
    /// Words or options that are wrong.
    pub(crate) fn validate(&self, call: &Call<'_>) -> Result<(), Failure> {
        if !self.columns.is_empty() {
            columns::validate(call.words, self.columns, call.tool == Tool::Leveretctl)?;
        }
        (self.check)(call)
    }

    pub(crate) const fn banner(self, banner: fn(&Call<'_>) -> String) -> Self {
        Self { banner, ..self }
    }

    pub(crate) const fn check(self, check: fn(&Call<'_>) -> Result<(), Failure>) -> Self {
        Self { check, ..self }
    }

    pub(crate) const fn formatter(self, formatter: Formatter) -> Self {
        Self { formatter, ..self }
    }

    pub(crate) const fn usage(self, usage: &'static str) -> Self {
        Self { usage, ..self }
    }

    pub(crate) const fn own_options(self, own_options: &'static str) -> Self {
        Self { own_options, ..self }
    }

    /// Makes it a command of `rabbitmqctl` and `rabbitmq-diagnostics`.
    pub(crate) const fn everywhere(self) -> Self {
        self.of(Tools::CTL).also_of(Tools::DIAGNOSTICS)
    }

    /// Makes it a command of these tools only.
    pub(crate) const fn of(self, tools: Tools) -> Self {
        Self { tools, ..self }
    }

    /// Makes it a command of these tools, too.
    pub(crate) const fn also_of(self, tools: Tools) -> Self {
        Self { tools: self.tools.and(tools), ..self }
    }

    /// Makes it a command of `rabbitmq-diagnostics` only.
    pub(crate) const fn diagnostics(self) -> Self {
        self.of(Tools::DIAGNOSTICS)
    }

    /// Prints the banner before the command runs, because it may take long.
    pub(crate) const fn waits(self) -> Self {
        Self { waits: true, ..self }
    }

    /// The same for a command that waits for the start of a node.
    pub(crate) const fn waits_for_start(self) -> Self {
        Self { waits_for_start: true, ..self.waits() }
    }

    /// Gives answers as much time as they take, unless a time limit is given.
    pub(crate) const fn slow(self) -> Self {
        Self { is_slow: true, ..self }
    }

    /// Time limit for each answer, unless one is given.
    pub(crate) fn answer_timeout(&self) -> Option<Duration> {
        (!self.is_slow).then_some(ANSWER_TIMEOUT)
    }
}
