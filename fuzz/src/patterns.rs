//! Patterns of permissions and policies: any text is compiled or refused, and matching ends.
//!
//! The first line is the pattern, each other one a name.

use broker::Pattern;
use broker::access::PermissionPattern;

/// So many names are tried.
const NAMES_MAX: usize = 8;

/// Checks a pattern with names.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut lines = text.split('\n');
    let pattern = lines.next().unwrap_or_default();
    let compiled = PermissionPattern::new(pattern);
    let of_policy = Pattern::new(pattern);
    assert!(pattern.is_empty() || compiled.is_ok() == of_policy.is_ok());
    let compiled = match compiled {
        Ok(compiled) => compiled,
        Err(problem) => return assert!(!problem.is_empty()),
    };
    assert_eq!(compiled.as_str(), pattern);
    let is_literal = pattern.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    for name in lines.take(NAMES_MAX).filter(|name| name.len() <= 255) {
        let allows = compiled.allows(name);
        assert_eq!(compiled.allows(name), allows, "the same twice");
        match pattern {
            "" => assert_eq!(allows, name.is_empty()),
            _ if is_literal => assert_eq!(allows, name.contains(pattern), "{pattern} in {name}"),
            _ => {}
        }
        if let (false, Ok(of_policy)) = (pattern.is_empty(), &of_policy) {
            assert_eq!(of_policy.matches(name), allows);
        }
    }
}
