//! The search of an entry node for the leader that adopts a client.

use std::sync::Arc;

use amqp::reply_code::ReplyCode;
use broker::refusal::Refusal;
use broker::time::Time;

use super::adopt::Answer;
use super::after;
use crate::limits::{LEADER_CHECK_INTERVAL, LEADER_WAIT};

/// A node that was asked to adopt a client, and what came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The node has answered.
    Answer(Answer),
    /// The node cannot be asked, or its answer cannot be read, for this reason.
    Failed(String),
    /// Another node leads the vhost since the question; the one that is asked may be silent ([`is_superseded`]).
    Superseded,
    /// The node has not answered until [`Seek::until`].
    Silent,
    /// The entry node hears neither the node nor a majority that may elect another one ([`is_cut_off`]). It refuses the
    /// client with this, if it has the vhost.
    CutOff(Option<Refusal>),
    /// The entry node stops.
    Stops,
}

/// The result of a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// The leader with this name has adopted the client.
    Adopted(Arc<str>),
    /// The entry node answers `connection.open` itself.
    Here,
    /// The client is refused.
    Refused(Refusal),
    /// The next question comes after [`LEADER_CHECK_INTERVAL`], and once this node has settled who leads the vhost, or
    /// until [`Seek::until`].
    Again,
}

/// The search: the leader of the vhost is asked to adopt the client, and the next leader if it is another one meanwhile, for
/// [`LEADER_WAIT`] at the most.
#[derive(Clone, Debug)]
pub struct Seek {
    /// Name of the entry node.
    entry: Arc<str>,
    vhost: String,
    user: String,
    until: Time,
    /// The leader that the last node has named.
    hint: Option<Arc<str>>,
    /// The node that is asked.
    asked: Option<Arc<str>>,
}

impl Seek {
    /// The search of an entry node for a user who opens a vhost.
    #[must_use]
    pub fn new(entry: &str, vhost: &str, user: &str, now: Time) -> Self {
        Self {
            entry: entry.into(),
            vhost: vhost.to_owned(),
            user: user.to_owned(),
            until: after(now, LEADER_WAIT),
            hint: None,
            asked: None,
        }
    }

    /// The time at which the search is given up.
    #[must_use]
    pub fn until(&self) -> Time {
        self.until
    }

    /// The node to ask: the one that the last has named, or else the one that the entry node `knows` to lead the vhost.
    /// None if the entry node answers `connection.open` itself: it has become the leader, or nobody is.
    pub fn next(&mut self, knows: impl FnOnce() -> Option<Arc<str>>) -> Option<Arc<str>> {
        let told = self.hint.take().filter(|leader| *leader != self.entry);
        self.asked = told.or_else(knows);
        self.asked.clone()
    }

    /// Decides on what came of the question.
    ///
    /// # Panics
    /// If no node was asked.
    #[must_use]
    pub fn heard(&mut self, reply: Reply, now: Time) -> Found {
        let leader = self.asked.take().expect("a node was asked");
        let is_unknown = reply == Reply::Answer(Answer::Unknown);
        let problem = match reply {
            Reply::Answer(Answer::Adopted) => return Found::Adopted(leader),
            Reply::CutOff(refusal) => return refusal.map_or(Found::Here, Found::Refused),
            Reply::Stops => return Found::Here,
            // A user or vhost that is new here may be known there soon.
            Reply::Answer(Answer::Unknown) => "it does not know the user".to_owned(),
            Reply::Answer(Answer::NotLeading(next)) => {
                self.hint = next.map(Arc::from);
                "it leads the vhost no more".to_owned()
            }
            Reply::Answer(Answer::Stopping) => "it stops".to_owned(),
            Reply::Failed(problem) => problem,
            Reply::Superseded => "another node leads the vhost since then".to_owned(),
            Reply::Silent => "it does not answer".to_owned(),
        };
        if after(now, LEADER_CHECK_INTERVAL) < self.until {
            return Found::Again;
        }
        let Self { vhost, user, .. } = self;
        Found::Refused(match is_unknown {
            true => {
                Refusal::not_allowed(format!("access to vhost '{vhost}' refused for user '{user}'"))
            }
            false => Refusal::new(
                ReplyCode::InternalError,
                format!("vhost '{vhost}' is led by node '{leader}', and {problem}"),
            ),
        })
    }
}

/// True if another node has become the leader than the one that is asked: `first` was known at the question, which may go
/// to a node of which the entry node was only told.
#[must_use]
pub fn is_superseded(asked: &str, first: Option<&str>, known: Option<&str>) -> bool {
    known != first && known.is_some_and(|known| known != asked)
}

/// True if neither the leader is heard nor a majority that may elect another one.
#[must_use]
pub fn is_cut_off(hears_leader: bool, may_elect: impl FnOnce() -> bool) -> bool {
    !hears_leader && !may_elect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_000);

    fn seek() -> Seek {
        Seek::new("here", "/", "anna", NOW)
    }

    fn named(name: &str) -> Option<Arc<str>> {
        Some(Arc::from(name))
    }

    fn not_leading(leader: Option<&str>) -> Reply {
        Reply::Answer(Answer::NotLeading(leader.map(str::to_owned)))
    }

    #[test]
    fn leader_that_is_named_is_asked_next_and_once() {
        let mut seek = seek();
        assert_eq!(seek.next(|| named("a")), named("a"));
        assert_eq!(seek.heard(not_leading(Some("b")), NOW), Found::Again);
        assert_eq!(seek.next(|| named("a")), named("b"));
        assert_eq!(seek.heard(not_leading(None), NOW), Found::Again);
        assert_eq!(seek.next(|| named("a")), named("a"));
        // The entry node itself: it waits until it has settled that.
        assert_eq!(seek.heard(not_leading(Some("here")), NOW), Found::Again);
        assert_eq!(seek.next(|| named("a")), named("a"));
        assert_eq!(seek.heard(Reply::Answer(Answer::Adopted), NOW), Found::Adopted("a".into()));
        assert_eq!(seek.next(|| None), None);
    }

    #[test]
    fn search_is_given_up_with_the_problem_of_the_last_node() {
        let last = NOW.plus_ms(7_950);
        let text = |reply: Reply, code| {
            let mut seek = seek();
            seek.next(|| named("a"));
            assert_eq!(seek.heard(reply.clone(), last.just_before()), Found::Again, "{reply:?}");
            seek.next(|| named("a"));
            let Found::Refused(refusal) = seek.heard(reply, last) else { panic!("not refused") };
            assert_eq!(refusal.code, code);
            refusal.explanation
        };
        let internal = |reply| text(reply, ReplyCode::InternalError);
        let led = |problem: &str| format!("vhost '/' is led by node 'a', and {problem}");
        assert_eq!(internal(not_leading(None)), led("it leads the vhost no more"));
        assert_eq!(internal(Reply::Answer(Answer::Stopping)), led("it stops"));
        assert_eq!(internal(Reply::Silent), led("it does not answer"));
        assert_eq!(internal(Reply::Superseded), led("another node leads the vhost since then"));
        assert_eq!(internal(Reply::Failed("no way".to_owned())), led("no way"));
        assert_eq!(
            text(Reply::Answer(Answer::Unknown), ReplyCode::NotAllowed),
            "access to vhost '/' refused for user 'anna'"
        );
    }

    #[test]
    fn entry_node_that_stops_or_is_cut_off_asks_nobody_else() {
        let refusal = Refusal::not_allowed("no");
        for (reply, found) in [
            (Reply::Stops, Found::Here),
            (Reply::CutOff(None), Found::Here),
            (Reply::CutOff(Some(refusal.clone())), Found::Refused(refusal)),
        ] {
            let mut seek = seek();
            seek.next(|| named("a"));
            assert_eq!(seek.heard(reply, NOW), found);
        }
        assert!(is_cut_off(false, || false));
        assert!(!is_cut_off(true, || false) && !is_cut_off(false, || true));
    }

    #[test]
    fn node_is_superseded_by_a_leader_that_was_not_known() {
        assert!(is_superseded("a", Some("a"), Some("b")));
        assert!(is_superseded("b", Some("a"), Some("c")));
        // The node of which this one was told, and the loss of a leader.
        assert!(!is_superseded("b", Some("a"), Some("b")));
        assert!(!is_superseded("b", Some("a"), Some("a")));
        assert!(!is_superseded("a", Some("a"), None));
    }
}
