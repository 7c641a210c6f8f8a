//! Generated names: of queues, consumers and direct-reply addresses.
//!
//! Each name is a prefix and 128 random bits, so that it neither collides nor can be guessed.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::Rng;

use crate::message::Name;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Generates a name: `prefix` and 22 characters of URL-safe base64.
pub(crate) fn generate(prefix: &str, random: &mut ChaCha12Rng) -> Name {
    let mut bits = (u128::from(random.next_u64()) << 64) | u128::from(random.next_u64());
    let mut name = String::with_capacity(prefix.len() + 22);
    name.push_str(prefix);
    for _ in 0..22 {
        let at = usize::try_from(bits % 64).expect("64 fits");
        name.push(char::from(ALPHABET[at]));
        bits /= 64;
    }
    name.into()
}
