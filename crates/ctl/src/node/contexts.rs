//! Contexts: brokers with names, in a file of the user that nobody else may read.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::machine::Environment;
use crate::failure::{CONFIG, Failure, INPUT_OUTPUT};

/// A broker, with the login for it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Context {
    /// Address of the API, unless there is a data directory.
    pub(crate) http_url: Option<String>,
    /// Data directory of a node of this machine.
    pub(crate) data_dir: Option<String>,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    /// File with the authorities that may sign the certificate of the node.
    pub(crate) cacert: Option<String>,
    pub(crate) is_insecure: bool,
}

/// The contexts of a user.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Contexts {
    /// Name of the one in use.
    pub(crate) used: Option<String>,
    pub(crate) all: BTreeMap<String, Context>,
}

impl Context {
    fn parse(value: &Value) -> Self {
        let text = |name| value.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            http_url: text("http_url"),
            data_dir: text("data_dir"),
            username: text("username"),
            password: text("password"),
            cacert: text("cacert"),
            is_insecure: value.get("insecure") == Some(&json!(true)),
        }
    }

    fn to_json(&self) -> Value {
        let mut fields = Map::new();
        for (name, text) in [
            ("http_url", &self.http_url),
            ("data_dir", &self.data_dir),
            ("username", &self.username),
            ("password", &self.password),
            ("cacert", &self.cacert),
        ] {
            if let Some(text) = text {
                fields.insert(name.to_owned(), json!(text));
            }
        }
        if self.is_insecure {
            fields.insert("insecure".to_owned(), json!(true));
        }
        Value::Object(fields)
    }
}

impl Contexts {
    /// The contexts in the file of the user; none without a file.
    ///
    /// # Errors
    /// If the file has another form.
    pub(crate) fn read(environment: &Environment<'_>) -> Result<Self, Failure> {
        let Some(file) = file(environment) else { return Ok(Self::default()) };
        let Some(text) = (environment.read)(&file) else { return Ok(Self::default()) };
        let wrong = || {
            Failure::plain(CONFIG, format!("Error: there are no contexts in '{}'", file.display()))
        };
        let value: Value = serde_json::from_str(&text).map_err(|_| wrong())?;
        let all = value.get("contexts").and_then(Value::as_object).ok_or_else(wrong)?;
        Ok(Self {
            used: value.get("used").and_then(Value::as_str).map(str::to_owned),
            all: all.iter().map(|(name, one)| (name.clone(), Context::parse(one))).collect(),
        })
    }

    /// The context with this name.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn named(&self, name: &str) -> Result<&Context, Failure> {
        self.all.get(name).ok_or_else(|| {
            let problem =
                format!("Error: there is no context '{name}' (see leveretctl context list)");
            Failure::plain(CONFIG, problem)
        })
    }

    /// Writes the file of the user, whose path is the result.
    ///
    /// # Errors
    /// If the user has no folder for configuration, or the file cannot be written.
    pub(crate) fn write(&self, environment: &Environment<'_>) -> Result<PathBuf, Failure> {
        let Some(file) = file(environment) else {
            let problem = "Error: contexts need a folder: neither HOME nor XDG_CONFIG_HOME is set";
            return Err(Failure::plain(CONFIG, problem));
        };
        let all: Map<String, Value> =
            self.all.iter().map(|(name, one)| (name.clone(), one.to_json())).collect();
        let text = format!("{:#}\n", json!({"used": self.used, "contexts": all}));
        replace(&file, &text).map_err(|error| {
            let problem = format!("Error: cannot write '{}': {error}", file.display());
            Failure::plain(INPUT_OUTPUT, problem)
        })?;
        Ok(file)
    }
}

/// The file with the contexts of the user.
fn file(environment: &Environment<'_>) -> Option<PathBuf> {
    let folder = (environment.variable)("XDG_CONFIG_HOME").map(PathBuf::from);
    let folder = folder.filter(|folder| folder.is_absolute());
    let home = || Some(PathBuf::from((environment.variable)("HOME")?).join(".config"));
    Some(folder.or_else(home)?.join("leveret").join("contexts.json"))
}

/// Replaces a file by one that only its owner may read.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let new = file.with_extension("json.new");
    // A file that a crash has left may have other permissions.
    let _ = std::fs::remove_file(&new);
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    out.write_all(text.as_bytes())?;
    out.sync_all()?;
    std::fs::rename(&new, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment<'a>(
        variable: &'a dyn Fn(&str) -> Option<String>,
        read: &'a dyn Fn(&Path) -> Option<String>,
    ) -> Environment<'a> {
        Environment { variable, read, host: "box".to_owned(), is_directory: &|_| true }
    }

    #[test]
    fn contexts_lie_in_the_folder_of_the_user() {
        let at = |pairs: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = pairs.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            file(&environment(&variable, &|_| None)).map(|file| file.display().to_string())
        };
        let home = ("HOME", "/h");
        assert_eq!(at(&[home]).as_deref(), Some("/h/.config/leveret/contexts.json"));
        assert_eq!(
            at(&[home, ("XDG_CONFIG_HOME", "/c")]).as_deref(),
            Some("/c/leveret/contexts.json")
        );
        assert_eq!(at(&[("XDG_CONFIG_HOME", "relative")]), None);
    }

    #[test]
    fn file_holds_what_was_written() {
        let context = Context {
            http_url: Some("https://h:15671".to_owned()),
            username: Some("ann".to_owned()),
            is_insecure: true,
            ..Context::default()
        };
        let contexts = Contexts {
            used: Some("prod".to_owned()),
            all: BTreeMap::from([("prod".to_owned(), context)]),
        };
        let folder = std::env::temp_dir().join(format!("leveret-contexts-{}", std::process::id()));
        let variable =
            |name: &str| (name == "XDG_CONFIG_HOME").then(|| folder.display().to_string());
        let read = |path: &Path| std::fs::read_to_string(path).ok();
        let environment = environment(&variable, &read);
        assert_eq!(Contexts::read(&environment), Ok(Contexts::default()));
        let file = contexts.write(&environment).unwrap();
        assert_eq!(Contexts::read(&environment), Ok(contexts));
        std::fs::write(&file, "[]").unwrap();
        assert!(Contexts::read(&environment).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
