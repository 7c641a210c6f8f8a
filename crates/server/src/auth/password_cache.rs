//! A cache of checked passwords, recognised by a keyed digest, so that none is hashed twice.
//!
//! A right password is remembered as long as the user has it: a flood of guesses never evicts a known client.
//! Wrong passwords are remembered for the newest guesses: a crowd of clients with an outdated password costs
//! one hash.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;

use crate::auth::login_queue::Digest;
use crate::auth::password::PasswordHash;
use crate::limits::{RIGHT_PASSWORDS_MAX, WRONG_PASSWORDS_MAX};

#[derive(Debug)]
struct Right {
    digest: Digest,
    hash: PasswordHash,
}

#[derive(Default, Debug)]
struct Passwords {
    right: BTreeMap<String, Right>,
    wrong: BTreeMap<Digest, PasswordHash>,
    /// The keys of `wrong`, the oldest first.
    wrong_in_order: VecDeque<Digest>,
}

/// The cache. A digest covers user name and password.
#[derive(Default, Debug)]
pub(crate) struct PasswordCache {
    passwords: Mutex<Passwords>,
}

impl PasswordCache {
    /// True if the password of `digest` is that of `user`, whose current hash is `hash`; none if it is not
    /// known.
    pub(crate) fn get(&self, user: &str, hash: &PasswordHash, digest: &Digest) -> Option<bool> {
        let passwords = self.passwords.lock();
        let right = passwords.right.get(user);
        if right.is_some_and(|right| right.digest == *digest && right.hash == *hash) {
            return Some(true);
        }
        passwords.wrong.get(digest).is_some_and(|of| of == hash).then_some(false)
    }

    /// Remembers whether the password of `digest` is that of `user`, as long as the user's hash is `hash`.
    pub(crate) fn put(&self, user: &str, hash: &PasswordHash, digest: Digest, is_right: bool) {
        let mut passwords = self.passwords.lock();
        let hash = hash.clone();
        if is_right {
            if passwords.right.len() >= RIGHT_PASSWORDS_MAX && !passwords.right.contains_key(user) {
                passwords.right.pop_first();
            }
            passwords.right.insert(user.to_owned(), Right { digest, hash });
            return;
        }
        if passwords.wrong.insert(digest, hash).is_none() {
            passwords.wrong_in_order.push_back(digest);
        }
        if passwords.wrong.len() > WRONG_PASSWORDS_MAX
            && let Some(oldest) = passwords.wrong_in_order.pop_front()
        {
            passwords.wrong.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_password_is_valid_until_the_user_has_another() {
        let cache = PasswordCache::default();
        let hash = |n| PasswordHash::Argon2 { salt: [n; 16], digest: [n; 32] };
        assert_eq!(cache.get("anna", &hash(1), &[1; 32]), None);
        cache.put("anna", &hash(1), [1; 32], true);
        cache.put("anna", &hash(1), [2; 32], false);
        let get = |digest, of| cache.get("anna", &hash(of), &[digest; 32]);
        assert_eq!((get(1, 1), get(2, 1), get(3, 1)), (Some(true), Some(false), None));
        assert_eq!((get(1, 2), get(2, 2)), (None, None));
        // The former password is valid again.
        cache.put("anna", &hash(2), [2; 32], true);
        assert_eq!((get(2, 2), get(1, 2)), (Some(true), None));
    }

    #[test]
    fn wrong_passwords_never_evict_a_right_one() {
        let cache = PasswordCache::default();
        cache.put("anna", &PasswordHash::None, [0; 32], true);
        for n in 0..=WRONG_PASSWORDS_MAX as u64 {
            let mut digest = [1; 32];
            digest[..8].copy_from_slice(&n.to_be_bytes());
            cache.put("anna", &PasswordHash::None, digest, false);
        }
        let passwords = cache.passwords.lock();
        assert_eq!(passwords.wrong.len(), WRONG_PASSWORDS_MAX);
        assert_eq!(passwords.wrong_in_order.len(), WRONG_PASSWORDS_MAX);
        assert_eq!(passwords.right.len(), 1);
    }
}
