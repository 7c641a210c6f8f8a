//! Failure to start a node.

use std::io;
use std::path::{Path, PathBuf};

use crate::auth::AuthError;
use crate::auth::ctl_token::CtlFileError;
use crate::auth::password::HashError;
use crate::cluster::ClusterError;
use crate::definitions::DefinitionsError;
use crate::disk::access::permission::{Use, first_unusable};
use crate::disk::access::sandbox;
use crate::disk::data_dir::DataDirError;
use crate::disk::json_files::node_file::NodeFileError;
use crate::disk::node_disk::NodeDiskError;
use crate::limits::EXIT_CONFIG;
use crate::metadata::MetadataOpenError;
use crate::node::replication::ReplicationError;
use crate::sockets::listener::ListenError;
use crate::tls::TlsError;
use crate::vhost::VhostError;

/// The reason why a node does not start: a sentence for the operator.
#[derive(thiserror::Error, Debug)]
pub(crate) enum StartError {
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error("cannot start the timer: {0}")]
    Timer(io::Error),
    #[error(transparent)]
    Replication(#[from] ReplicationError),
    #[error(transparent)]
    Metadata(#[from] MetadataOpenError),
    #[error("cannot start the thread that follows the metadata of the cluster: {0}")]
    Follow(io::Error),
    #[error("cannot start the persister: {0}")]
    Persister(io::Error),
    #[error("cannot start the pager: {0}")]
    Pager(io::Error),
    #[error("cannot start the watch over holds: {0}")]
    HoldWatch(io::Error),
    #[error(transparent)]
    NodeFile(#[from] NodeFileError),
    #[error(transparent)]
    Vhost(#[from] VhostError),
    #[error("cannot start the threads for HTTP: {0}")]
    Http(io::Error),
    #[error("cannot watch for signals: {0}")]
    Signals(io::Error),
    #[error(transparent)]
    Auth(#[from] AuthError),
    #[error("cannot make the default user: {0}")]
    DefaultUser(#[from] HashError),
    #[error("permissions of the default user: {0}")]
    Permissions(String),
    #[error("{0}")]
    Definitions(#[from] DefinitionsError),
    #[error("cannot open the log file {path}: {error}")]
    LogFile { path: PathBuf, error: io::Error },
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    #[error("cluster: {0}")]
    Cluster(#[from] ClusterError),
    #[error("the system has no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
    #[error("cannot finish a reset: {0}")]
    Reset(io::Error),
    #[error(transparent)]
    CtlFile(#[from] CtlFileError),
    #[error("cannot restart as a stopped node: {0}")]
    NextImage(io::Error),
    #[error(transparent)]
    Listen(#[from] ListenError),
}

impl StartError {
    /// Exit code of the process: [`EXIT_CONFIG`] if another start fails as well until an operator has changed the
    /// configuration or a file that it names, otherwise 1.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Definitions(_) | Self::LogFile { .. } | Self::Tls(_) | Self::Permissions(_) => {
                EXIT_CONFIG
            }
            Self::Listen(ListenError { error, .. })
                if error.kind() == io::ErrorKind::PermissionDenied =>
            {
                EXIT_CONFIG
            }
            Self::Cluster(
                ClusterError::Secret(_)
                | ClusterError::Record(_)
                | ClusterError::RecordLevel(_)
                | ClusterError::SameId(..),
            ) => EXIT_CONFIG,
            Self::DataDir(_)
            | Self::Metadata(_)
            | Self::Follow(_)
            | Self::Timer(_)
            | Self::Replication(_)
            | Self::Persister(_)
            | Self::Pager(_)
            | Self::HoldWatch(_)
            | Self::NodeFile(_)
            | Self::Vhost(_)
            | Self::Http(_)
            | Self::Signals(_)
            | Self::Auth(_)
            | Self::DefaultUser(_)
            | Self::Cluster(_)
            | Self::Randomness(_)
            | Self::Reset(_)
            | Self::CtlFile(_)
            | Self::NextImage(_)
            | Self::Listen(_) => 1,
        }
    }

    /// The sentence for the operator: where the data directory cannot be used, also with the file that the system
    /// refuses, its owner, and the command that mends it.
    pub(crate) fn explained(&self, data_dir: &Path) -> String {
        let is_about_data_dir = matches!(
            self,
            Self::DataDir(_)
                | Self::Metadata(_)
                | Self::NodeFile(_)
                | Self::Vhost(_)
                | Self::Cluster(_)
                | Self::Reset(_)
                | Self::CtlFile(_)
        );
        if !is_about_data_dir {
            return self.to_string();
        }
        if let Some(confinement) = sandbox::confinement(data_dir) {
            format!("{self}; {confinement}")
        } else if let Some(unusable) = first_unusable(data_dir, Use::Write) {
            format!("{self}; {unusable}")
        } else {
            self.to_string()
        }
    }
}

impl From<NodeDiskError> for StartError {
    fn from(error: NodeDiskError) -> Self {
        match error {
            NodeDiskError::DataDir(error) => Self::DataDir(error),
            NodeDiskError::Reset(error) => Self::Reset(error),
        }
    }
}
