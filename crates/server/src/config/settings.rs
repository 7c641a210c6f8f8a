//! Settings from all sources, and their precedence.
//!
//! Sources are read in order: files, environment, command line. A later value replaces earlier values of the
//! same key. For a list, a later source replaces the whole list of an earlier source.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use line::setting_value;

use super::file::{self, KeyName, Line};
use super::key::{Effect, Key, nearest};
use super::keys::{self, EITHER, LISTS};
use super::{Config, ConfigError, cluster};

/// Maximum depth of included files; deeper nesting is a cycle.
const INCLUDES_MAX: usize = 16;

/// Maximum depth of values that refer to each other; deeper nesting is a cycle.
const SUBSTITUTIONS_MAX: usize = 16;

/// True for the path of a directory of files that is not there, such as `conf.d`, in one that is: an administrator or a
/// package manager removes an empty one, while another name is a mistake.
fn is_missing_directory(path: &Path) -> bool {
    let is_missing = path.try_exists().is_ok_and(|exists| !exists);
    let is_beside_files =
        path.parent().is_some_and(|parent| parent.is_dir() || parent == Path::new(""));
    is_missing && is_beside_files && path.extension().is_some_and(|name| name == "d")
}

/// The source of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// The built-in default.
    Default,
    /// A default of the container image.
    Container,
    /// A line of a file.
    File { path: PathBuf, line: usize },
    /// An environment variable.
    Environment(&'static str),
    /// A command line flag.
    CommandLine(&'static str),
}

impl Source {
    /// True if both sources are of the same kind, so that their entries form one list.
    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Container => f.write_str("container image"),
            Self::File { path, line } => {
                let path = path.display().to_string();
                write!(f, "{}, line {line}", line::one_line(&path))
            }
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::CommandLine(name) => write!(f, "command line {name}"),
        }
    }
}

/// One assignment of a value to a key.
#[derive(Clone, Debug)]
struct Assignment {
    key: &'static Key,
    name: KeyName,
    variable: String,
    value: String,
    source: Source,
    /// True if `$(NAME)` in the value stands for another value.
    may_refer: bool,
}

/// All assignments that are not replaced, and the problems found.
#[derive(Clone, Default, Debug)]
pub(crate) struct Settings {
    assignments: Vec<Assignment>,
    problems: Vec<Problem>,
    warnings: Vec<String>,
    /// The files that were read, in order.
    files: Vec<PathBuf>,
}

/// A problem, and its place in the order of the report: a file by its number, and a line.
#[derive(Clone, Debug)]
struct Problem {
    place: (usize, usize),
    text: String,
}

impl Settings {
    /// Reads a file, or all files of a directory whose names end in `.conf`, in order. A directory for such files may be
    /// missing.
    pub(crate) fn read(&mut self, path: &Path) {
        if is_missing_directory(path) {
            return;
        }
        if !path.is_dir() {
            self.read_file(path, 0);
            return;
        }
        match std::fs::read_dir(path) {
            Ok(entries) => {
                let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
                let is_one = |path: &PathBuf| path.extension().is_some_and(|e| e == "conf");
                let mut paths: Vec<PathBuf> = paths.filter(is_one).collect();
                paths.sort();
                paths.iter().for_each(|path| self.read_file(path, 0));
            }
            Err(error) => self.cannot_read(path, &error),
        }
    }

    fn cannot_read(&mut self, path: &Path, error: &std::io::Error) {
        let text = format!("cannot read configuration file {}: {error}", path.display());
        let place = (self.number_of(path), 0);
        self.problems.push(Problem { place, text });
    }

    /// The number of a file in the order of reading.
    fn number_of(&self, path: &Path) -> usize {
        self.files.iter().position(|file| file == path).unwrap_or(self.files.len())
    }

    fn read_file(&mut self, path: &Path, depth: usize) {
        if !self.files.iter().any(|file| file == path) {
            self.files.push(path.to_owned());
        }
        match std::fs::read_to_string(path) {
            Ok(text) => self.read_text(&text, path, depth),
            Err(error) => self.cannot_read(path, &error),
        }
    }

    /// Reads the text of a file.
    pub(crate) fn read_text(&mut self, text: &str, path: &Path, depth: usize) {
        if let Some(line) = file::erlang_terms(text) {
            let source = Source::File { path: path.to_owned(), line };
            let problem = "Erlang terms, as in advanced.config, are not read; write every setting as \
                           'key = value'";
            self.problem(&source, problem);
            return;
        }
        for line in file::lines(text) {
            let at = |line| Source::File { path: path.to_owned(), line };
            match line {
                Ok((line, Line::Entry { key, value })) => {
                    self.assign(&key, &value.text, at(line), !value.is_literal);
                }
                Ok((line, Line::Include(_))) if depth == INCLUDES_MAX => {
                    self.problem(&at(line), "files include each other in a circle");
                }
                Ok((_, Line::Include(other))) => {
                    let beside = path.parent().unwrap_or_else(|| Path::new("")).join(other);
                    self.read_file(&beside, depth + 1);
                }
                Err((line, problem)) => self.problem(&at(line), &problem),
            }
        }
    }

    /// Adds a problem with its place.
    pub(super) fn problem(&mut self, source: &Source, problem: &str) {
        let place = match source {
            Source::File { path, line } => (self.number_of(path), *line),
            Source::Default
            | Source::Container
            | Source::Environment(_)
            | Source::CommandLine(_) => (usize::MAX, 0),
        };
        self.problems.push(Problem { place, text: format!("{source}: {problem}") });
    }

    /// Adds a warning for the log.
    pub(super) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Assigns a value to a key.
    pub(crate) fn set(&mut self, name: &str, value: &str, source: Source) {
        self.assign(&KeyName::new(name), value, source, false);
    }

    fn assign(&mut self, name: &KeyName, value: &str, source: Source, may_refer: bool) {
        let Some((key, found)) = keys::find(name) else {
            let written = name.to_string();
            let meant = nearest(&written, keys::plain_names());
            let meant = meant.or_else(|| keys::longer_name(&written, value));
            let meant = meant.map(|name| format!(", did you mean '{name}'?")).unwrap_or_default();
            self.problem(&source, &format!("unknown key '{name}'{meant}"));
            return;
        };
        if let Some(list) = list_of(&found.name) {
            let of_list = |one: &Assignment| is_within(&one.name, list);
            self.assignments.retain(|one| !of_list(one) || one.source.is_like(&source));
        }
        self.assignments.retain(|one| one.name != found.name);
        let (name, value) = (found.name, value.to_owned());
        let variable = found.variable;
        self.assignments.push(Assignment { key, name, variable, value, source, may_refer });
    }

    /// Makes the configuration from all assignments, with warnings.
    ///
    /// # Errors
    /// [`ConfigError`] with all problems and their places.
    pub(crate) fn into_config(mut self) -> Result<Config, ConfigError> {
        self.substitute();
        let warnings = std::mem::take(&mut self.warnings);
        let mut config = Config { warnings, ..Config::default() };
        for (winner, loser) in EITHER {
            if let Some(source) = self.source(winner).cloned()
                && self.source(loser).is_some()
            {
                let warning = format!("{source}: {winner} is in force, {loser} is not");
                config.warnings.push(warning);
                self.assignments.retain(|one| one.name != KeyName::new(loser));
            }
        }
        for list in LISTS {
            if self.assignments.iter().any(|one| is_within(&one.name, list.prefix)) {
                (list.clear)(&mut config);
            }
        }
        // `none` for a list is applied last, so that it overrides the entries.
        self.assignments.sort_by_key(|one| LISTS.iter().any(|list| one.key.name == list.prefix));
        let mut refused = Vec::new();
        for one in self.assignments.iter().filter(|one| one.value.is_empty()) {
            refused.push((one.source.clone(), format!("{}: there is no value", one.name)));
        }
        for one in self.assignments.iter().filter(|one| !one.value.is_empty()) {
            let Assignment { key, name, variable, value, source, .. } = one;
            match key.effect {
                Effect::Sets(set) => {
                    if let Err(problem) = set(&mut config, variable, value) {
                        let problem = hide(key, value, problem);
                        refused.push((source.clone(), format!("{name} {problem}")));
                    }
                }
                Effect::Nothing(why) => {
                    config.warnings.push(format!("{source}: {name} has no effect: {why}"));
                }
                // Disabling a feature that does not exist is not an error.
                Effect::Refused(_) if matches!(value.as_str(), "false" | "none") => {}
                Effect::Refused(why) => {
                    refused.push((source.clone(), format!("{name} is not possible: {why}")));
                }
            }
        }
        refused.iter().for_each(|(source, problem)| self.problem(source, problem));
        config.has_http = self.source_of("management.tcp").is_some() || config.https.port.is_none();
        let mut problems = self.sorted_problems();
        if problems.is_empty() {
            problems = config.contradictions();
            problems.extend(self.check_cluster(&mut config));
        }
        if !problems.is_empty() {
            let in_one_line = |problem: &String| line::one_line(problem).into_owned();
            return Err(ConfigError { problems: problems.iter().map(in_one_line).collect() });
        }
        // A path that cannot be made absolute is shown as it was given.
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        config.files = self.files.iter().map(absolute).collect();
        config.effective = self.effective(&config);
        Ok(config)
    }

    /// Completes the nodes of a cluster with their places, and adds warnings. Returns the problems.
    fn check_cluster(&self, config: &mut Config) -> Vec<String> {
        for node in &mut config.cluster.nodes {
            if let Some(source) = self.source(&node.key) {
                node.key = format!("{} ({source})", node.key);
            }
        }
        let place = |prefix: &str| {
            let source = self.source_of(prefix);
            source.map_or_else(|| prefix.to_owned(), ToString::to_string)
        };
        if let Err(problem) = config.cluster.complete_dns(&place) {
            return vec![problem];
        }
        let own_name = config.full_node_name();
        let home = cluster::home();
        let problems = config.cluster.problems(&own_name, home.as_deref(), &place);
        if problems.is_empty() {
            let warnings = config.cluster.warnings(&own_name, home.as_deref(), &place);
            config.warnings.extend(warnings);
        }
        problems
    }

    /// The problems, in the order of files and lines.
    fn sorted_problems(&self) -> Vec<String> {
        let mut problems: Vec<&Problem> = self.problems.iter().collect();
        problems.sort_by_key(|problem| problem.place);
        problems.into_iter().map(|problem| problem.text.clone()).collect()
    }

    /// The source of the value of a key.
    pub(super) fn source(&self, name: &str) -> Option<&Source> {
        let name = KeyName::new(name);
        self.assignments.iter().find(|one| one.name == name).map(|one| &one.source)
    }

    /// The source of any key with this prefix.
    pub(super) fn source_of(&self, prefix: &str) -> Option<&Source> {
        let one = self.assignments.iter().find(|one| is_within(&one.name, prefix));
        one.map(|one| &one.source)
    }

    /// Replaces `$(NAME)` in values by the value of another key or of an environment variable.
    fn substitute(&mut self) {
        let plain = self.assignments.iter().filter(|one| !one.key.is_secret);
        let known: BTreeMap<String, String> =
            plain.map(|one| (one.name.to_string(), one.value.clone())).collect();
        let mut problems = Vec::new();
        for one in &mut self.assignments {
            if one.may_refer {
                match substituted(&one.value, &known) {
                    Ok(value) => one.value = value,
                    Err(problem) => {
                        problems.push((one.source.clone(), format!("{} {problem}", one.name)));
                    }
                }
            }
        }
        problems.iter().for_each(|(source, problem)| self.problem(source, problem));
    }

    /// Every key in force, as in a file, with its source.
    fn effective(&self, config: &Config) -> Vec<Effective> {
        let mut shown = Vec::new();
        for key in keys::all().filter(|key| matches!(key.effect, Effect::Sets(_))) {
            let said: Vec<&Assignment> =
                self.assignments.iter().filter(|one| std::ptr::eq(one.key, key)).collect();
            for one in &said {
                let value = if key.is_secret { MASK.to_owned() } else { one.value.clone() };
                let source = one.source.clone();
                shown.push(Effective { name: one.name.to_string(), value, source });
            }
            if said.is_empty() {
                shown.extend(self.default_of(key, config));
            }
        }
        shown
    }

    /// The default of a key that is not set.
    fn default_of(&self, key: &Key, config: &Config) -> Vec<Effective> {
        let default = |name: &str, value: &str| {
            let value = if key.is_secret { MASK } else { value };
            Effective { name: name.to_owned(), value: value.to_owned(), source: Source::Default }
        };
        let is_overruled = EITHER.iter().any(|(a, b)| {
            (*a == key.name && self.source(b).is_some())
                || (*b == key.name && self.source(a).is_some())
        });
        if is_overruled || (key.name.starts_with("management.tcp") && !config.has_http) {
            return Vec::new();
        }
        if let Some(value) = key.default {
            return vec![default(key.name, value)];
        }
        let lists = LISTS.iter().filter(|list| self.source_of(list.prefix).is_none());
        let values = lists.flat_map(|list| list.default);
        let of_key = values.filter(|(name, _)| key.matches(&KeyName::new(name)).is_some());
        of_key.map(|(name, value)| default(name, value)).collect()
    }
}

/// Shown in place of a secret value.
const MASK: &str = "********";

/// A key in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Effective {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) source: Source,
}

impl fmt::Display for Effective {
    /// Formats one line of a configuration file, which is read as the same value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, source } = self;
        let setting = format!("{name} = {}", setting_value::written(value));
        write!(f, "{setting:<50} # {source}")
    }
}

/// The list that a key belongs to.
fn list_of(name: &KeyName) -> Option<&'static str> {
    LISTS.iter().map(|list| list.prefix).find(|prefix| is_within(name, prefix))
}

/// True if a key is an entry of the list, or configures the list as a whole.
fn is_within(name: &KeyName, prefix: &str) -> bool {
    name.0.starts_with(&KeyName::new(prefix).0)
}

/// The problem without the value, if the value is a secret.
fn hide(key: &Key, value: &str, problem: String) -> String {
    if key.is_secret { problem.replace(value, MASK) } else { problem }
}

fn substituted(value: &str, known: &BTreeMap<String, String>) -> Result<String, String> {
    let mut value = value.to_owned();
    for _ in 0..SUBSTITUTIONS_MAX {
        let Some((before, (name, after))) =
            value.split_once("$(").and_then(|(before, rest)| Some((before, rest.split_once(')')?)))
        else {
            return Ok(value);
        };
        let found = known.get(name).cloned().or_else(|| std::env::var(name).ok());
        let found = found.ok_or_else(|| {
            format!("names $({name}), which is neither a key nor a variable of the environment")
        })?;
        value = format!("{before}{found}{after}");
    }
    Err("refers to itself".to_owned())
}
