//! Users, logins and permissions.
//!
//! The users are an immutable snapshot that is replaced on changes. Verifying a password is slow on purpose,
//! and as slow if the user does not exist. Few passwords are verified at the same time, in the order of
//! `login_queue`; a password that was verified before is recognised by a keyed digest (`password_cache`).

pub(crate) mod ctl_token;
pub(crate) mod hashing;
pub(crate) mod login_counts;
pub(crate) mod login_history;
pub(crate) mod login_queue;
pub(crate) mod password;
pub(crate) mod password_cache;
pub(crate) mod user_slots;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use broker::access::{Access, PermissionPattern, Permissions, TopicPermission};
use parking_lot::RwLock;
use session::Credentials;
use sha2::{Digest, Sha256};

use crate::auth::hashing::Hashers;
use crate::auth::login_counts::LoginCounts;
use crate::auth::login_history::Account;
use crate::auth::login_queue::{LoginQueue, Turn};
use crate::auth::password::{HashError, PasswordHash};
use crate::auth::password_cache::PasswordCache;
use crate::limits::{LOGIN_CROWD, LOGIN_FAILURES_FREE, LOGIN_PENALTY};
use crate::requests::UserLimit;
use crate::snapshot::logins::Protocol;
use crate::source::Source;

/// A user with permissions and limits.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) password: PasswordHash,
    pub(crate) tags: Vec<String>,
    /// Permissions by vhost.
    pub(crate) permissions: BTreeMap<String, Permissions>,
    /// Topic permissions by vhost, with patterns as text because they may contain variables.
    pub(crate) topic_permissions: BTreeMap<String, Vec<TopicPattern>>,
    pub(crate) limits: BTreeMap<UserLimit, i64>,
}

/// Users by name.
pub(crate) type Users = BTreeMap<String, Arc<User>>;

/// A topic permission as configured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TopicPattern {
    pub(crate) exchange: String,
    pub(crate) write: String,
    pub(crate) read: String,
}

impl User {
    /// Creates a user without permissions.
    pub(crate) fn new(name: &str, password: PasswordHash, tags: Vec<String>) -> Self {
        Self {
            name: name.to_owned(),
            password,
            tags,
            permissions: BTreeMap::new(),
            topic_permissions: BTreeMap::new(),
            limits: BTreeMap::new(),
        }
    }

    /// The user's limit of this kind; none for unlimited.
    pub(crate) fn maximum(&self, limit: UserLimit) -> Option<u64> {
        crate::requests::maximum(&self.limits, limit)
    }

    /// The user's permissions in `vhost`; none if the user may not enter it.
    pub(crate) fn access(&self, vhost: &str) -> Option<Arc<Access>> {
        let permissions = self.permissions.get(vhost)?.clone();
        let topics = self.topic_permissions.get(vhost).map(Vec::as_slice).unwrap_or_default();
        let topic_permissions = topics.iter().map(|p| self.expanded(vhost, p)).collect();
        Some(Arc::new(Access {
            user: self.name.as_str().into(),
            impersonator: self.tags.iter().any(|tag| tag == "impersonator"),
            permissions,
            topic_permissions,
        }))
    }

    /// Replaces `{username}` and `{vhost}` by the literal names. A pattern that becomes too large allows
    /// nothing.
    fn expanded(&self, vhost: &str, pattern: &TopicPattern) -> TopicPermission {
        let expand = |text: &str| {
            let text = text.replace("{username}", &escaped(&self.name));
            PermissionPattern::stored(&text.replace("{vhost}", &escaped(vhost)))
        };
        TopicPermission {
            exchange: pattern.exchange.as_str().into(),
            write: expand(&pattern.write),
            read: expand(&pattern.read),
        }
    }
}

/// Escapes `text` as a pattern that matches only itself.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // `\<` and `\>` are the bounds of a word.
        if !c.is_alphanumeric() && c.is_ascii() && !matches!(c, '<' | '>') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// The reason of a refused login; only for the log.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
pub(crate) enum LoginError {
    #[error("unknown user or wrong password")]
    Credentials,
    #[error("this user may only log in from this machine")]
    NotLoopback,
    #[error("password hashing is not available")]
    Unavailable,
    #[error("too many logins wait to be checked")]
    Busy,
}

/// The reason why logins cannot be set up.
#[derive(thiserror::Error, Debug)]
pub(crate) enum AuthError {
    #[error("the system has no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
    #[error("cannot start the threads that hash passwords: {0}")]
    Threads(#[from] std::io::Error),
}

/// Users and logins of the node.
#[derive(Debug)]
pub(crate) struct Auth {
    users: RwLock<Users>,
    /// Names of users who may log in only from the local machine.
    loopback_users: Vec<String>,
    passwords: PasswordCache,
    digest_key: [u8; 32],
    /// The queue for the hashing threads.
    queue: Arc<LoginQueue>,
    hashers: Hashers,
    pub(crate) counts: LoginCounts,
}

impl Auth {
    /// Creates an empty set of users.
    ///
    /// # Errors
    /// If the operating system provides no randomness or no threads.
    pub(crate) fn new(loopback_users: Vec<String>) -> Result<Self, AuthError> {
        let mut digest_key = [0; 32];
        getrandom::fill(&mut digest_key)?;
        Ok(Self {
            users: RwLock::default(),
            loopback_users,
            passwords: PasswordCache::default(),
            queue: Arc::new(LoginQueue::new(getrandom::u64()?)),
            digest_key,
            hashers: Hashers::start()?,
            counts: LoginCounts::default(),
        })
    }

    /// Adds a user, or replaces the one of the same name.
    pub(crate) fn put(&self, user: User) {
        self.users.write().insert(user.name.clone(), Arc::new(user));
    }

    /// Replaces all users.
    pub(crate) fn replace(&self, users: Users) {
        *self.users.write() = users;
    }

    /// A copy of all users, to modify and pass to [`Self::replace`].
    pub(crate) fn to_change(&self) -> Users {
        self.users.read().clone()
    }

    /// All users, by name.
    pub(crate) fn users(&self) -> Vec<Arc<User>> {
        self.users.read().values().cloned().collect()
    }

    /// The user with this name.
    pub(crate) fn user(&self, name: &str) -> Option<Arc<User>> {
        self.users.read().get(name).cloned()
    }

    /// True if this user may log in only from the local machine.
    pub(crate) fn is_loopback_only(&self, user: &str) -> bool {
        self.loopback_users.iter().any(|name| name == user)
    }

    /// Checks a login from `peer`.
    pub(crate) async fn login(
        &self,
        protocol: Protocol,
        credentials: Credentials,
        peer: IpAddr,
    ) -> Result<Arc<User>, LoginError> {
        let user = self.verify(protocol, credentials, Source::from(peer)).await?;
        // Checked last, so that only a client with the right password learns of the restriction.
        if self.is_loopback_only(&user.name) && !is_loopback(peer) {
            return Err(LoginError::NotLoopback);
        }
        Ok(user)
    }

    /// Verifies the password and returns its user.
    async fn verify(
        &self,
        protocol: Protocol,
        credentials: Credentials,
        source: Source,
    ) -> Result<Arc<User>, LoginError> {
        let user = self.candidate(&credentials);
        let name = credentials.user;
        let digest = self.digest(&name, &credentials.password);
        let hash = user.as_ref().map_or(PasswordHash::None, |user| user.password.clone());
        let result = |is_right| match (is_right, &user) {
            // The permissions may have changed while the password was checked.
            (true, Some(user)) => Ok(self
                .user(&name)
                .filter(|newest| newest.password == user.password)
                .unwrap_or_else(|| Arc::clone(user))),
            _ => Err(LoginError::Credentials),
        };
        if let Some(is_right) = self.passwords.get(&name, &hash, &digest) {
            return result(is_right);
        }
        if hash.is_quickly(&credentials.password) {
            self.passwords.put(&name, &hash, digest, true);
            return result(true);
        }
        let account = self.account(&name);
        let permit = loop {
            let turn = self.queue.turn((protocol, source), account.clone(), digest).await;
            let turn = turn.ok_or(LoginError::Busy)?;
            // Another login with the same password was checked first: after a restart all clients log in at
            // once.
            if let Some(is_right) = self.passwords.get(&name, &hash, &digest) {
                return result(is_right);
            }
            if let Turn::Check(permit) = turn {
                break permit;
            }
        };
        let verify = {
            let hash = hash.clone();
            move || (hash.verify(&credentials.password), permit)
        };
        let (is_right, permit) = self.hashers.run(verify).await.ok_or(LoginError::Unavailable)?;
        let is_right = is_right && user.is_some();
        self.passwords.put(&name, &hash, digest, is_right);
        self.queue.checked(source, &account, &digest, is_right);
        drop(permit);
        result(is_right)
    }

    /// The delay of the answer to a refused login, so that a client that guesses while others wait does not
    /// try again at once.
    pub(crate) fn penalty(&self, name: &str, peer: IpAddr) -> Duration {
        let (waiting, failures) = self.queue.crowd(Source::from(peer), &self.account(name));
        match waiting >= LOGIN_CROWD && failures >= LOGIN_FAILURES_FREE {
            true => LOGIN_PENALTY,
            false => Duration::ZERO,
        }
    }

    /// Hashes a new password of a user, before waiting logins are checked.
    pub(crate) async fn hash(
        &self,
        user: &str,
        password: Vec<u8>,
    ) -> Result<PasswordHash, HashError> {
        let digest = self.digest(user, &password);
        let turn = self.queue.urgent_turn().await.ok_or(HashError::Hashing)?;
        let hash = move || {
            let hashed = PasswordHash::new(&password);
            drop(turn);
            hashed
        };
        let hash = self.hashers.run(hash).await.ok_or(HashError::Hashing)??;
        self.passwords.put(user, &hash, digest, true);
        Ok(hash)
    }

    /// Hashes a new password of a user at the start of the node.
    pub(crate) fn hash_now(&self, user: &str, password: &str) -> Result<PasswordHash, HashError> {
        let hash = PasswordHash::new(password.as_bytes())?;
        self.passwords.put(user, &hash, self.digest(user, password.as_bytes()), true);
        Ok(hash)
    }

    fn account(&self, name: &str) -> Account {
        match self.users.read().contains_key(name) {
            true => Account::Known(name.to_owned()),
            false => Account::unknown(&self.digest(name, &[])),
        }
    }

    /// The user that the password would have to belong to.
    fn candidate(&self, credentials: &Credentials) -> Option<Arc<User>> {
        // An empty password never logs in, with any stored hash (as in RabbitMQ).
        if credentials.password.is_empty() {
            return None;
        }
        self.user(&credentials.user)
    }

    fn digest(&self, user: &str, password: &[u8]) -> [u8; 32] {
        Sha256::new()
            .chain_update(self.digest_key)
            .chain_update((user.len() as u64).to_be_bytes())
            .chain_update(user)
            .chain_update(password)
            .finalize()
            .into()
    }
}

/// True if the address of the peer is a loopback address, in IPv4, IPv6 or mapped notation.
pub(crate) fn is_loopback(peer: IpAddr) -> bool {
    peer.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::HASHING_MAX;

    #[test]
    fn loopback_is_this_machine_only() {
        for (address, expected) in [
            ("127.0.0.1", true),
            ("127.5.5.5", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.1", false),
            ("::ffff:10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(address.parse().unwrap()), expected, "{address}");
        }
    }

    const HERE: [u8; 4] = [127, 0, 0, 1];
    const ELSEWHERE: [u8; 4] = [10, 0, 0, 1];

    fn user(name: &str, password: &str) -> User {
        User::new(name, PasswordHash::new(password.as_bytes()).unwrap(), Vec::new())
    }

    async fn login(
        auth: &Auth,
        user: &str,
        password: &str,
        peer: [u8; 4],
    ) -> Result<(), LoginError> {
        let credentials = Credentials {
            user: user.to_owned(),
            password: password.as_bytes().to_vec(),
            mechanism: "PLAIN",
        };
        auth.login(Protocol::Amqp091, credentials, IpAddr::from(peer)).await.map(|_| ())
    }

    #[tokio::test]
    async fn empty_password_is_refused() {
        let auth = Auth::new(Vec::new()).unwrap();
        auth.put(user("empty", ""));
        auth.put(user("full", "secret"));
        assert_eq!(login(&auth, "full", "secret", HERE).await, Ok(()));
        assert_eq!(login(&auth, "full", "", HERE).await, Err(LoginError::Credentials));
        assert_eq!(login(&auth, "empty", "", HERE).await, Err(LoginError::Credentials));
    }

    #[tokio::test]
    async fn loopback_user_is_refused_from_elsewhere_right_after_a_local_login() {
        let auth = Auth::new(vec!["guest".to_owned()]).unwrap();
        auth.put(user("guest", "secret"));
        auth.put(user("bob", "secret"));
        for _ in 0..2 {
            let refused = Err(LoginError::NotLoopback);
            assert_eq!(login(&auth, "guest", "secret", ELSEWHERE).await, refused);
            assert_eq!(login(&auth, "guest", "secret", HERE).await, Ok(()));
        }
        // A client without the password learns nothing about the user.
        let wrong = login(&auth, "guest", "wrong", ELSEWHERE).await;
        assert_eq!(wrong, Err(LoginError::Credentials));
        assert_eq!(login(&auth, "bob", "secret", ELSEWHERE).await, Ok(()));
    }

    #[tokio::test]
    async fn logins_with_one_password_share_one_hash() {
        let auth = Arc::new(Auth::new(Vec::new()).unwrap());
        auth.put(user("bob", "secret"));
        let logins: Vec<_> = (0..100)
            .map(|_| {
                let auth = Arc::clone(&auth);
                tokio::spawn(async move { login(&auth, "bob", "secret", HERE).await })
            })
            .collect();
        for login in logins {
            assert_eq!(login.await.unwrap(), Ok(()));
        }
        // Those that had their turn before the first one was checked.
        assert!((1..=HASHING_MAX).contains(&auth.queue.hashes()), "{}", auth.queue.hashes());
    }

    #[tokio::test]
    async fn old_password_is_refused_at_once() {
        let auth = Auth::new(Vec::new()).unwrap();
        auth.put(user("bob", "old"));
        assert_eq!(login(&auth, "bob", "old", HERE).await, Ok(()));
        auth.put(user("bob", "new"));
        assert_eq!(login(&auth, "bob", "old", HERE).await, Err(LoginError::Credentials));
        assert_eq!(login(&auth, "bob", "new", HERE).await, Ok(()));
        assert_eq!(login(&auth, "bob", "new", HERE).await, Ok(()));
    }

    #[tokio::test]
    async fn known_accounts_do_not_wait_behind_guesses() {
        let auth = Arc::new(Auth::new(Vec::new()).unwrap());
        auth.put(user("bob", "secret"));
        assert_eq!(login(&auth, "bob", "secret", HERE).await, Ok(()));
        // No login is checked while these permits are held.
        let _first = auth.queue.urgent_turn().await;
        let _second = auth.queue.urgent_turn().await;
        assert_eq!(login(&auth, "bob", "secret", HERE).await, Ok(()));
        let mut changed = User::clone(&auth.user("bob").unwrap());
        changed.tags.push("management".to_owned());
        auth.put(changed);
        assert_eq!(login(&auth, "bob", "secret", HERE).await, Ok(()));
        let imported = hash_of_test12();
        auth.put(User::new("imported", imported, Vec::new()));
        assert_eq!(login(&auth, "imported", "test12", HERE).await, Ok(()));
    }

    /// `rabbitmqctl hash_password` of `test12` with the salt 908DC60A.
    fn hash_of_test12() -> PasswordHash {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;
        let bytes = STANDARD.decode("kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR").unwrap();
        PasswordHash::from_rabbitmq(&bytes, "rabbit_password_hashing_sha256").unwrap()
    }

    #[tokio::test]
    async fn wrong_password_is_hashed_once() {
        let auth = Auth::new(Vec::new()).unwrap();
        auth.put(user("bob", "secret"));
        let refused = Err(LoginError::Credentials);
        for name in ["bob", "nobody"] {
            assert_eq!(login(&auth, name, "wrong", HERE).await, refused);
        }
        let turns = (auth.queue.urgent_turn().await, auth.queue.urgent_turn().await);
        for name in ["bob", "nobody"] {
            assert_eq!(login(&auth, name, "wrong", HERE).await, refused);
        }
        drop(turns);
        auth.put(user("nobody", "wrong"));
        assert_eq!(login(&auth, "nobody", "wrong", HERE).await, Ok(()));
    }

    #[tokio::test]
    async fn penalty_applies_to_crowds_of_failures_only() {
        let auth = Arc::new(Auth::new(Vec::new()).unwrap());
        auth.put(user("bob", "secret"));
        let here = IpAddr::from(HERE);
        let penalty = || auth.penalty("bob", here);
        let account = auth.account("bob");
        for _ in 0..LOGIN_FAILURES_FREE {
            auth.queue.checked(Source::from(here), &account, &[0; 32], false);
        }
        assert_eq!(penalty(), Duration::ZERO);
        let _turns = (auth.queue.urgent_turn().await, auth.queue.urgent_turn().await);
        let crowd: Vec<_> = (0..LOGIN_CROWD)
            .map(|n| {
                let auth = Arc::clone(&auth);
                tokio::spawn(async move { login(&auth, "bob", &n.to_string(), HERE).await })
            })
            .collect();
        while auth.queue.crowd(Source::from(here), &account).0 < LOGIN_CROWD {
            tokio::task::yield_now().await;
        }
        assert_eq!(penalty(), LOGIN_PENALTY);
        assert_eq!(auth.penalty("anna", here), Duration::ZERO);
        let elsewhere = auth.penalty("bob", IpAddr::from(ELSEWHERE));
        assert_eq!(elsewhere, Duration::ZERO);
        crowd.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[test]
    fn names_in_topic_permissions_are_no_patterns() {
        let all = PermissionPattern::new(".*").unwrap();
        let mut user = User::new("a.*|b", PasswordHash::None, Vec::new());
        let permissions = Permissions { configure: all.clone(), write: all.clone(), read: all };
        user.permissions.insert("/".to_owned(), permissions);
        let topic = TopicPattern {
            exchange: "amq.topic".to_owned(),
            write: "^{username}\\.".to_owned(),
            read: ".*".to_owned(),
        };
        user.topic_permissions.insert("/".to_owned(), vec![topic]);
        let access = user.access("/").unwrap();
        let write = &access.topic_permissions[0].write;
        assert!(write.allows("a.*|b.news"));
        assert!(!write.allows("axx.news"));
        assert!(!write.allows("b.news"));
        assert!(user.access("/other").is_none());
    }

    #[test]
    fn escaped_name_matches_only_itself() {
        for c in (0..128).map(char::from).chain(['é', '\u{2028}', '\u{1f430}']) {
            let name = format!("a{c}b");
            let pattern = PermissionPattern::stored(&format!("^{}$", escaped(&name)));
            assert!(pattern.allows(&name), "{name:?}");
            for other in ["ab", "a", "axb", "aab", "a b"] {
                assert_eq!(pattern.allows(other), name == other, "{name:?} and {other}");
            }
        }
    }
}
