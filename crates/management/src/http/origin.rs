//! Origin of requests: pages of other sites, and names that resolve to this machine.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode};

use crate::http::answer::ApiError;

/// Refuses changes that a page of another site sends.
pub(crate) fn check_origin(headers: &HeaderMap) -> Result<(), ApiError> {
    if !is_from_another_site(headers) {
        return Ok(());
    }
    let reason = "requests of other sites are not accepted";
    Err(ApiError::new(StatusCode::FORBIDDEN, "forbidden", reason))
}

/// True if the headers say that a page of another site sends the request.
pub(crate) fn is_from_another_site(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if let Some(site) = headers.get("sec-fetch-site") {
        return !matches!(site.as_bytes(), b"same-origin" | b"none");
    }
    let host = text(HOST).unwrap_or_default();
    text(ORIGIN).is_some_and(|origin| origin.split_once("://").is_none_or(|(_, at)| at != host))
}

/// True if the `Host` header names this machine by `localhost` or an address. Any other name may resolve to
/// this machine without belonging to it.
pub(crate) fn is_for_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST).and_then(|host| host.to_str().ok()) else {
        // A browser always sends the header.
        return true;
    };
    // The whole header is checked, because text behind an address may belong to a name.
    let is_port = |rest: &str| {
        let digits = rest.strip_prefix(':').unwrap_or(rest);
        rest.is_empty() || rest.len() > digits.len() && digits.parse::<u16>().is_ok()
    };
    if let Some(rest) = host.strip_prefix('[') {
        return rest
            .split_once(']')
            .is_some_and(|(address, rest)| address.parse::<Ipv6Addr>().is_ok() && is_port(rest));
    }
    let (name, rest) = host.split_at(host.find(':').unwrap_or(host.len()));
    let is_local = name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok();
    is_local && is_port(rest)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn foreign_host_names_are_not_this_machine() {
        let ours = |host: &str| is_for_this_machine(&headers(&[("host", host)]));
        for host in
            ["localhost", "localhost:15672", "LocalHost:1", "127.0.0.1:15672", "[::1]:15672"]
        {
            assert!(ours(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:15672",
            "localhost.evil.example",
            "",
            ":15672",
            "[::1].evil.example",
            "[::1].evil.example:15672",
            "[::1]evil.example",
            "[::1",
            "[127.0.0.1]",
            "127.0.0.1.evil.example",
            "127.0.0.1:evil.example",
            "127.0.0.1:1:1",
            "localhost:",
            "evil.example@localhost",
            "::1",
        ] {
            assert!(!ours(host), "{host}");
        }
        assert!(is_for_this_machine(&headers(&[])));
    }

    #[test]
    fn origin_of_another_site_is_detected() {
        let host = ("host", "broker:15672");
        let other = |pair| is_from_another_site(&headers(&[host, pair]));
        assert!(other(("origin", "http://evil.example")));
        assert!(other(("origin", "null")));
        assert!(other(("sec-fetch-site", "cross-site")));
        assert!(other(("sec-fetch-site", "same-site")));
        assert!(!other(("origin", "https://broker:15672")));
        assert!(!other(("sec-fetch-site", "same-origin")));
        assert!(!is_from_another_site(&headers(&[host])));
    }
}
