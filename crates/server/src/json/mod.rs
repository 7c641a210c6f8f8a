//! Types of the broker in JSON, as in definitions and the API.

pub mod base64_text;
pub mod depth;
pub mod import_preview;
pub mod limits;
pub mod policy;
pub mod table;
pub mod vhost;
