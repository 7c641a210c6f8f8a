//! The token of the local administrator: anyone who can read the data directory can operate the node.
//!
//! At start, the node writes `ctl.json` to the data directory, readable by the owner only: the URL of its
//! API, its name, and a token that is new each time. At stop, the file is removed. A login with the token is
//! accepted from the local machine only.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use broker::access::Access;
use serde_json::json;
use subtle::ConstantTimeEq as _;

use crate::auth::is_loopback;
use crate::requests::{Caller, LoginRefused};
use crate::snapshot::node::Listener;

const NAME: &str = "ctl.json";
/// The name of the local administrator in the log; it is not a user.
const ADMINISTRATOR: &str = "leveretctl";
/// Random bytes in a token.
const TOKEN_BYTES: usize = 32;

/// The reason why the file with the token cannot be written.
#[derive(thiserror::Error, Debug)]
#[error("cannot write {path}: {error}")]
pub(crate) struct CtlFileError {
    path: PathBuf,
    error: io::Error,
}

/// The token of one start of the node.
pub(crate) struct CtlToken(String);

impl std::fmt::Debug for CtlToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CtlToken(..)")
    }
}

impl CtlToken {
    /// Creates a random token.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The text that a client must present.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Logs in with the token from `peer`; the administrator may enter all of these vhosts.
    ///
    /// # Errors
    /// If the token is wrong, or the peer is another machine.
    pub(crate) fn login(
        &self,
        shown: &[u8],
        peer: IpAddr,
        vhosts: Vec<String>,
    ) -> Result<Caller, LoginRefused> {
        if !is_loopback(peer) || !bool::from(self.0.as_bytes().ct_eq(shown)) {
            return Err(LoginRefused::Credentials);
        }
        Ok(administrator(vhosts))
    }

    /// Writes the file with the API's [`url`] of the node named `node`, if the node has an API. Dropping the
    /// result removes the file.
    ///
    /// # Errors
    /// [`CtlFileError`].
    pub(crate) fn publish(
        &self,
        data_dir: &Path,
        url: Option<&str>,
        node: &str,
    ) -> Result<Published, CtlFileError> {
        let text = json!({"http": url, "node": node, "token": self.as_str()});
        let path = data_dir.join(NAME);
        match write(&path, &data_dir.join("ctl.json.new"), &format!("{text:#}\n")) {
            Ok(()) => Ok(Published { path }),
            Err(error) => Err(CtlFileError { path, error }),
        }
    }
}

/// Replaces the file by way of a new one, which only the owner may read from its beginning.
fn write(path: &Path, new: &Path, text: &str) -> io::Result<()> {
    // A file left by a crash may be readable by others.
    match std::fs::remove_file(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
    file.write_all(text.as_bytes())?;
    std::fs::rename(new, path)
}

/// The URL of the API for the local machine, preferably without TLS, with the prefix of its paths.
pub(crate) fn url(listeners: &[Listener], path_prefix: Option<&str>) -> Option<String> {
    let speaking = |protocol| listeners.iter().find(|one| one.protocol == protocol);
    let Listener { protocol, mut address } = *speaking("http").or_else(|| speaking("https"))?;
    if address.ip().is_unspecified() {
        address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    Some(format!("{protocol}://{address}{}", path_prefix.unwrap_or_default()))
}

/// The permissions of the local administrator in any vhost.
pub(crate) fn full_access() -> Result<Arc<Access>, String> {
    let access = Access::matching(ADMINISTRATOR.into(), ".*")?;
    Ok(Arc::new(Access { impersonator: true, ..access }))
}

/// The published file; removed when dropped.
#[derive(Debug)]
pub(crate) struct Published {
    path: PathBuf,
}

impl Drop for Published {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the file");
        }
    }
}

/// The holder of the token of a machine, who may enter all of these vhosts.
pub(crate) fn administrator(vhosts: Vec<String>) -> Caller {
    Caller {
        name: ADMINISTRATOR.to_owned(),
        tags: vec!["administrator".to_owned()],
        vhosts,
        is_loopback_only: true,
        is_local_administrator: true,
        only_vhosts: None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn token_is_valid_on_this_machine_only() {
        let (token, other) = (CtlToken::new().unwrap(), CtlToken::new().unwrap());
        let login = |shown: &CtlToken, peer: &str| {
            token.login(shown.0.as_bytes(), peer.parse().unwrap(), vec!["/".to_owned()])
        };
        let caller = login(&token, "127.0.0.1").unwrap();
        assert!(caller.is_local_administrator && caller.is_loopback_only);
        assert!(login(&token, "::1").is_ok() && login(&token, "::ffff:127.0.0.1").is_ok());
        assert_eq!(login(&token, "10.0.0.1"), Err(LoginRefused::Credentials));
        assert_eq!(login(&other, "127.0.0.1"), Err(LoginRefused::Credentials));
        assert!(token.login(b"", IpAddr::V4(Ipv4Addr::LOCALHOST), Vec::new()).is_err());
        assert_eq!(format!("{token:?}"), "CtlToken(..)");
    }

    #[test]
    fn ctl_file_is_private_and_removed_at_the_end() {
        let folder = std::env::temp_dir().join(format!("leveret-ctl-token-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("ctl.json.new"), "left").unwrap();
        let token = CtlToken::new().unwrap();
        let listener = |protocol, address: &str| {
            let address = address.parse().unwrap();
            Listener { protocol, address }
        };
        let https = listener("https", "10.0.0.1:15671");
        assert_eq!(url(&[https], None).as_deref(), Some("https://10.0.0.1:15671"));
        let url = url(&[https, listener("http", "[::]:15672")], Some("/rabbit"));
        let published = token.publish(&folder, url.as_deref(), "leveret@h").unwrap();
        let path = folder.join(NAME);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let text: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(text["http"], "http://127.0.0.1:15672/rabbit");
        assert_eq!((&text["node"], &text["token"]), (&json!("leveret@h"), &json!(token.0)));
        drop(published);
        assert!(!path.exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn local_administrator_has_all_permissions() {
        let access = full_access().unwrap();
        for pattern in
            [&access.permissions.configure, &access.permissions.write, &access.permissions.read]
        {
            assert!(pattern.allows("") && pattern.allows("any name\nof all"));
        }
    }
}
