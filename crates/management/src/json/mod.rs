//! Types of the broker in JSON, and bounded parsing of JSON.

pub(crate) mod base64_text;
pub(crate) mod bounded;
pub(crate) mod import_preview;
pub(crate) mod limits;
pub(crate) mod policy;
pub(crate) mod severity;
pub(crate) mod table;
pub(crate) mod taken;
pub(crate) mod timestamp;
pub(crate) mod vhost;
