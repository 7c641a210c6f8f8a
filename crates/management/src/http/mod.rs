//! The HTTP layer: extractors, answers, logins, headers, the files of the web page, and the documentation.

pub(crate) mod access;
pub(crate) mod allowance;
pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod credentials;
pub(crate) mod docs;
pub(crate) mod extract;
pub(crate) mod fields;
pub(crate) mod forward;
pub(crate) mod listed;
pub(crate) mod middleware;
pub(crate) mod multipart;
pub(crate) mod origin;
pub(crate) mod routes;
pub(crate) mod scope;
mod unread_body;
pub(crate) mod web;
