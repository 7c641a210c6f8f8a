//! The HTTP layer: extractors, answers, logins, headers, and the files of the web page.

pub(crate) mod access;
pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod credentials;
pub(crate) mod extract;
pub(crate) mod fields;
pub(crate) mod middleware;
pub(crate) mod multipart;
pub(crate) mod origin;
pub(crate) mod web;
