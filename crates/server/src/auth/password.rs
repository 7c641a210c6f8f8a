//! Password hashes: storage and verification.
//!
//! New passwords are stored as argon2id with OWASP's minimum parameters (19 MiB, two passes, one lane).
//! Hashes from RabbitMQ (four bytes of salt, then SHA-256 or SHA-512 of salt and password) are accepted
//! unchanged.

use argon2::{Algorithm, Argon2, Params, Version};
use sha2::{Digest, Sha256, Sha512};
use subtle::ConstantTimeEq;

const ARGON2_MEMORY_KIB: u32 = 19 * 1024;
const ARGON2_PASSES: u32 = 2;
const ARGON2_LANES: u32 = 1;
const RABBITMQ_SALT_BYTES: usize = 4;

/// Bytes of a `rabbit_password_hashing_sha512` hash: salt and digest.
const RABBITMQ_SHA512_BYTES: usize = RABBITMQ_SALT_BYTES + 64;

/// Bytes of an argon2id hash: salt and digest.
const ARGON2_BYTES: usize = 16 + 32;

/// The algorithm that the HTTP API names for argon2id. No hash of SHA-256 is as long.
const READABLE_ALGORITHM: &str = "rabbit_password_hashing_sha256";

/// A stored password hash.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum PasswordHash {
    /// The algorithm argon2id, used for new passwords.
    Argon2 { salt: [u8; 16], digest: [u8; 32] },
    /// RabbitMQ's `rabbit_password_hashing_sha256`.
    Sha256 { salt: [u8; 4], digest: Vec<u8> },
    /// RabbitMQ's `rabbit_password_hashing_sha512`.
    Sha512 { salt: [u8; 4], digest: Vec<u8> },
    /// No hash: no password matches.
    None,
}

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Argon2 { .. } => "argon2id",
            Self::Sha256 { .. } => "sha256",
            Self::Sha512 { .. } => "sha512",
            Self::None => "none",
        })
    }
}

/// An error in a password hash.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
pub(crate) enum HashError {
    /// The operating system provided no randomness for a salt.
    #[error("no randomness for a salt")]
    Salt,
    /// A hash of the wrong length for its algorithm.
    #[error("the password hash does not have the length of its algorithm")]
    Length,
    /// An algorithm that is not RabbitMQ's SHA-256 or SHA-512.
    #[error("the hashing algorithm is not known")]
    Algorithm,
    /// Hashing failed, which should not happen with these parameters.
    #[error("the password cannot be hashed")]
    Hashing,
}

impl PasswordHash {
    /// Hashes a new password. Takes tens of milliseconds.
    pub(crate) fn new(password: &[u8]) -> Result<Self, HashError> {
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).map_err(|_| HashError::Salt)?;
        Ok(Self::Argon2 { salt, digest: argon2id(password, &salt)? })
    }

    /// Hashes a password as RabbitMQ does by default, for clients that want to submit a hash.
    pub(crate) fn new_sha256(password: &[u8]) -> Result<Self, HashError> {
        let mut salt = [0; RABBITMQ_SALT_BYTES];
        getrandom::fill(&mut salt).map_err(|_| HashError::Salt)?;
        let digest = Sha256::new().chain_update(salt).chain_update(password).finalize().to_vec();
        Ok(Self::Sha256 { salt, digest })
    }

    /// Parses a hash whose algorithm may be missing, or be the one that `to_rabbitmq` names; the length then decides.
    ///
    /// # Errors
    /// If the length does not fit the algorithm or, without one, any known algorithm.
    pub(crate) fn from_import(bytes: &[u8], algorithm: Option<&str>) -> Result<Self, HashError> {
        let is_named = |name| algorithm.is_none_or(|algorithm| algorithm == name);
        if bytes.len() == ARGON2_BYTES && is_named(READABLE_ALGORITHM) {
            return Self::from_bytes(bytes, "argon2id");
        }
        // COMPAT: hashes without an algorithm: RabbitMQ takes each for SHA-256, so that no password is
        // right for one of SHA-512.
        Self::from_bytes(
            bytes,
            algorithm.unwrap_or(match bytes.len() {
                RABBITMQ_SHA512_BYTES => "rabbit_password_hashing_sha512",
                _ => "rabbit_password_hashing_sha256",
            }),
        )
    }

    /// Parses a hash from RabbitMQ: salt and digest, decoded from base64.
    pub(crate) fn from_rabbitmq(bytes: &[u8], algorithm: &str) -> Result<Self, HashError> {
        if bytes.is_empty() {
            return Ok(Self::None);
        }
        let (salt, digest) =
            bytes.split_first_chunk::<RABBITMQ_SALT_BYTES>().ok_or(HashError::Length)?;
        let (salt, digest) = (*salt, digest.to_vec());
        match (algorithm, digest.len()) {
            ("rabbit_password_hashing_sha256", 32) => Ok(Self::Sha256 { salt, digest }),
            ("rabbit_password_hashing_sha512", 64) => Ok(Self::Sha512 { salt, digest }),
            ("rabbit_password_hashing_sha256" | "rabbit_password_hashing_sha512", _) => {
                Err(HashError::Length)
            }
            _ => Err(HashError::Algorithm),
        }
    }

    /// Salt and digest concatenated, and the name of an algorithm that RabbitMQ's clients know.
    // COMPAT: argon2id over HTTP: clients with types know RabbitMQ's three names, and refuse a list with any other.
    pub(crate) fn to_rabbitmq(&self) -> (Vec<u8>, &'static str) {
        match (self, self.to_bytes()) {
            (Self::Argon2 { .. }, (bytes, _)) => (bytes, READABLE_ALGORITHM),
            (Self::Sha256 { .. } | Self::Sha512 { .. } | Self::None, exact) => exact,
        }
    }

    /// Salt and digest concatenated, and the name of the algorithm.
    pub(crate) fn to_bytes(&self) -> (Vec<u8>, &'static str) {
        match self {
            Self::Argon2 { salt, digest } => ([&salt[..], digest].concat(), "argon2id"),
            Self::Sha256 { salt, digest } => {
                ([&salt[..], digest].concat(), "rabbit_password_hashing_sha256")
            }
            Self::Sha512 { salt, digest } => {
                ([&salt[..], digest].concat(), "rabbit_password_hashing_sha512")
            }
            Self::None => (Vec::new(), "rabbit_password_hashing_sha256"),
        }
    }

    /// Parses the result of `to_bytes`.
    ///
    /// # Errors
    /// If the length does not fit the algorithm.
    pub(crate) fn from_bytes(bytes: &[u8], algorithm: &str) -> Result<Self, HashError> {
        if algorithm != "argon2id" {
            return Self::from_rabbitmq(bytes, algorithm);
        }
        let (salt, digest) = bytes.split_first_chunk::<16>().ok_or(HashError::Length)?;
        let digest = digest.try_into().map_err(|_| HashError::Length)?;
        Ok(Self::Argon2 { salt: *salt, digest })
    }

    /// True if `password` matches a hash that can be checked within microseconds, which only imported hashes
    /// can.
    pub(crate) fn is_quickly(&self, password: &[u8]) -> bool {
        match self {
            Self::Sha256 { salt, digest } => {
                let hashed = Sha256::new().chain_update(salt).chain_update(password).finalize();
                hashed.as_slice().ct_eq(digest).into()
            }
            Self::Sha512 { salt, digest } => {
                let hashed = Sha512::new().chain_update(salt).chain_update(password).finalize();
                hashed.as_slice().ct_eq(digest).into()
            }
            Self::Argon2 { .. } | Self::None => false,
        }
    }

    /// Hashes a password, but returns this hash if it is one of that password and of the algorithm of new
    /// passwords. Takes tens of milliseconds.
    pub(crate) fn renewed(&self, password: &[u8]) -> Result<Self, HashError> {
        let is_current = matches!(self, Self::Argon2 { .. }) && self.verify(password);
        if is_current { Ok(self.clone()) } else { Self::new(password) }
    }

    /// True if `password` matches. Takes tens of milliseconds, equally long for every kind of hash, so that
    /// the time does not reveal which users exist.
    pub(crate) fn verify(&self, password: &[u8]) -> bool {
        let salt = match self {
            Self::Argon2 { salt, .. } => salt,
            Self::Sha256 { .. } | Self::Sha512 { .. } | Self::None => &[0; 16],
        };
        let argon2id = std::hint::black_box(argon2id(password, salt));
        match self {
            Self::Argon2 { digest, .. } => argon2id.is_ok_and(|hashed| hashed.ct_eq(digest).into()),
            Self::Sha256 { .. } | Self::Sha512 { .. } => self.is_quickly(password),
            Self::None => false,
        }
    }
}

fn argon2id(password: &[u8], salt: &[u8; 16]) -> Result<[u8; 32], HashError> {
    let params = Params::new(ARGON2_MEMORY_KIB, ARGON2_PASSES, ARGON2_LANES, Some(32));
    let params = params.map_err(|_| HashError::Hashing)?;
    let mut digest = [0; 32];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(password, salt, &mut digest)
        .map_err(|_| HashError::Hashing)?;
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn new_password_alone_verifies() {
        let hash = PasswordHash::new(b"guest").unwrap();
        assert!(hash.verify(b"guest"));
        assert!(!hash.verify(b"Guest"));
        assert!(!hash.verify(b""));
    }

    #[test]
    fn hashes_of_rabbitmq_verify() {
        // `rabbitmqctl hash_password` of RabbitMQ's documentation: salt 908DC60A, password test12.
        let bytes = STANDARD.decode("kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR").unwrap();
        let hash = PasswordHash::from_rabbitmq(&bytes, "rabbit_password_hashing_sha256").unwrap();
        assert!(hash.verify(b"test12") && hash.is_quickly(b"test12"));
        assert!(!hash.verify(b"test13") && !hash.is_quickly(b"test13"));
    }

    #[test]
    fn hash_algorithm_is_told_by_its_length() {
        let (salt, password) = ([7; RABBITMQ_SALT_BYTES], b"test12");
        let sha256 = Sha256::new().chain_update(salt).chain_update(password).finalize();
        let sha512 = Sha512::new().chain_update(salt).chain_update(password).finalize();
        for digest in [sha256.to_vec(), sha512.to_vec()] {
            let hash = [&salt[..], &digest].concat();
            let hash = PasswordHash::from_import(&hash, None).unwrap();
            assert!(hash.verify(password));
            assert!(!hash.verify(b"test13"));
        }
        assert_eq!(PasswordHash::from_import(&[7; 50], None), Err(HashError::Length));
        let said = Some("rabbit_password_hashing_sha256");
        assert_eq!(PasswordHash::from_import(&[7; 68], said), Err(HashError::Length));
    }

    #[test]
    fn hash_of_argon2id_has_a_name_that_clients_know_and_comes_back_unchanged() {
        let hash = PasswordHash::new(b"guest").unwrap();
        let (bytes, named) = hash.to_rabbitmq();
        assert_eq!(named, "rabbit_password_hashing_sha256");
        assert_eq!((bytes.clone(), "argon2id"), hash.to_bytes());
        for said in [Some(named), Some("argon2id"), None] {
            assert_eq!(PasswordHash::from_import(&bytes, said).as_ref(), Ok(&hash), "{said:?}");
        }
        let sha512 = Some("rabbit_password_hashing_sha512");
        assert_eq!(PasswordHash::from_import(&bytes, sha512), Err(HashError::Length));
    }

    #[test]
    fn hash_of_the_wrong_length_is_refused_and_no_hash_verifies_nothing() {
        let refused = PasswordHash::from_rabbitmq(&[1; 20], "rabbit_password_hashing_sha256");
        assert_eq!(refused, Err(HashError::Length));
        let refused = PasswordHash::from_rabbitmq(&[1; 36], "rabbit_password_hashing_md5");
        assert_eq!(refused, Err(HashError::Algorithm));
        let none = PasswordHash::from_rabbitmq(&[], "rabbit_password_hashing_sha256").unwrap();
        assert!(!none.verify(b""));
    }
}
