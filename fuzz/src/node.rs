//! A node for checks over HTTP: with two users, on a data directory of its own that goes with it.

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, StatusCode};
use server::{Configuration, Embedded};
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

/// Definitions at the beginning.
const DEFINITIONS: &str = include_str!("node.json");

/// Folder whose file system is usually in memory.
const MEMORY: &str = "/dev/shm";

/// Largest answer that is looked at, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An answer: its status, headers, and body.
pub(crate) type Answer = (StatusCode, HeaderMap, Vec<u8>);

/// A node and the runtime that its API is called on.
pub(crate) struct Node {
    /// Dropped before its data directory.
    embedded: Option<Embedded>,
    folder: Folder,
}

thread_local! {
    static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() };
}

impl Node {
    /// A node that has never been used.
    pub(crate) fn new() -> Self {
        let folder = Folder::new();
        std::fs::write(folder.0.join("definitions.json"), DEFINITIONS).expect("a file");
        let embedded = Some(start(&folder.0));
        // Only at its first start.
        std::fs::write(folder.0.join("definitions.json"), "{}").expect("a file");
        Self { embedded, folder }
    }

    /// The node is stopped and started again.
    pub(crate) fn restart(&mut self) {
        self.embedded = None;
        self.embedded = Some(start(&self.folder.0));
    }

    /// Credentials of the local administrator: no password has to be hashed, which takes its time on
    /// purpose.
    pub(crate) fn login(&self) -> String {
        format!("Bearer {}", self.embedded().token())
    }

    fn embedded(&self) -> &Embedded {
        self.embedded.as_ref().expect("a node that runs")
    }

    /// Asks the API something, from this machine.
    pub(crate) fn ask(&self, mut request: Request<Body>) -> Answer {
        let client = SocketAddr::from(([127, 0, 0, 1], 40_000));
        request.extensions_mut().insert(ConnectInfo(client));
        let router = management::router(Arc::clone(self.embedded().node()));
        let answer = async {
            let response = router.oneshot(request).await.expect("every request is answered");
            let (parts, body) = response.into_parts();
            let body = to_bytes(body, ANSWER_BYTES_MAX).await.expect("a whole answer");
            (parts.status, parts.headers, body.to_vec())
        };
        RUNTIME.with(|runtime| runtime.get_or_init(runtime_of_node).block_on(answer))
    }
}

fn start(folder: &Path) -> Embedded {
    let folder = folder.display();
    let text = format!(
        "data_dir = {folder}/data\nload_definitions = {folder}/definitions.json\n\
         durability = os\nloopback_users = none\nnodename = rabbit@fuzz\n"
    );
    let configuration = Configuration::parse(&text, Path::new("fuzz.conf")).expect("it is right");
    Embedded::start(&configuration).expect("the node starts")
}

/// Some requests lend their thread to what waits for the disk, which needs a second one.
fn runtime_of_node() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().expect("threads")
}

/// A folder that goes with this value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("leveret-fuzz-{}-{count}", std::process::id());
        let memory = Some(Path::new(MEMORY)).filter(|folder| folder.is_dir());
        let folder = memory.map_or_else(std::env::temp_dir, Path::to_owned).join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Otherwise the system does when it empties the temporary directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
