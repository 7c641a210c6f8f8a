//! Credentials in the `Authorization` header.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use server::requests::Credentials;

use crate::http::answer::ApiError;

/// Parses the `Authorization` header.
pub(crate) fn credentials(headers: &HeaderMap) -> Result<Credentials, ApiError> {
    let Some(value) = headers.get(AUTHORIZATION) else {
        return Err(ApiError::login_required());
    };
    let malformed = || ApiError::bad_request("the Authorization header cannot be read");
    let (scheme, rest) =
        value.to_str().ok().and_then(|v| v.split_once(' ')).ok_or_else(malformed)?;
    if scheme.eq_ignore_ascii_case("bearer") {
        let password = rest.trim().as_bytes().to_vec();
        return Ok(Credentials { user: String::new(), password, is_token: true });
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(malformed());
    }
    let bytes = STANDARD.decode(rest.trim()).map_err(|_| malformed())?;
    let colon = bytes.iter().position(|byte| *byte == b':').ok_or_else(malformed)?;
    let (user, password) = bytes.split_at(colon);
    // No user has a name that is not UTF-8.
    let user = std::str::from_utf8(user).map_err(|_| ApiError::wrong_login())?.to_owned();
    let password = password.iter().skip(1).copied().collect();
    Ok(Credentials { user, password, is_token: false })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;
    use axum::response::IntoResponse as _;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn credentials_allow_colons_and_any_bytes_in_passwords() {
        let login = STANDARD.encode(b"anna:a:b\xff");
        let login = format!("bAsIc  {login}");
        let read = credentials(&headers(&[("authorization", &login)])).unwrap();
        assert_eq!((read.user.as_str(), &read.password[..]), ("anna", &b"a:b\xff"[..]));
    }

    #[test]
    fn credentials_distinguish_malformed_headers_and_wrong_logins() {
        let status = |value: &str| {
            let error = credentials(&headers(&[("authorization", value)])).unwrap_err();
            error.into_response().status().as_u16()
        };
        for malformed in ["", "Basic", "Basic ", "Basic !!!", "Basic Z3Vlc3Q=", "Digest x"] {
            assert_eq!(status(malformed), 400, "{malformed}");
        }
        assert_eq!(status(&format!("Basic {}", STANDARD.encode(b"gu\xffest:x"))), 401);
        assert_eq!(credentials(&headers(&[])).unwrap_err(), ApiError::login_required());
    }

    #[test]
    fn credentials_of_a_token_have_no_user() {
        let read = credentials(&headers(&[("authorization", "Bearer  abc ")])).unwrap();
        assert!(read.is_token && read.user.is_empty());
        assert_eq!(read.password, b"abc");
    }
}
