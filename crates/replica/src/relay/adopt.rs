//! The judgement of a leader that is asked to adopt a client.

/// The answer of the node that is asked to adopt a client. The octets of AMQP follow `Adopted`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The receiver continues the session of the client.
    Adopted,
    /// The receiver does not lead the vhost; perhaps it knows the node that does.
    NotLeading(Option<String>),
    /// The user or the vhost is not known here.
    Unknown,
    /// The receiver stops.
    Stopping,
}

/// The facts that a node judges by. They are asked for in this order, each once at the most.
pub trait Standing {
    /// True once the node stops.
    fn is_stopping(&self) -> bool;

    /// True if the vhost is there, and the user.
    fn knows_client(&self) -> bool;

    /// Succeeds if the node leads the vhost.
    ///
    /// # Errors
    /// The name of the node that leads the vhost, if it is known.
    fn leads(&self) -> Result<(), Option<String>>;
}

/// Decides whether a node can take a client. Limits and permissions are checked later, and answered to the client.
///
/// None until the node has settled who leads the vhost, for which it waits: a node that is elected serves soon.
#[must_use]
pub fn judge(node: &impl Standing, has_settled: bool) -> Option<Answer> {
    if !has_settled {
        return node.is_stopping().then_some(Answer::Stopping);
    }
    Some(match node.knows_client() {
        false => Answer::Unknown,
        true => match node.leads() {
            Ok(()) => Answer::Adopted,
            Err(leader) => Answer::NotLeading(leader),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Node(bool, bool, Result<(), Option<String>>);

    impl Standing for Node {
        fn is_stopping(&self) -> bool {
            self.0
        }

        fn knows_client(&self) -> bool {
            self.1
        }

        fn leads(&self) -> Result<(), Option<String>> {
            self.2.clone()
        }
    }

    #[test]
    fn node_adopts_clients_that_it_knows_of_vhosts_that_it_leads() {
        let leader = Some("b".to_owned());
        for (node, answer) in [
            (Node(false, true, Ok(())), Answer::Adopted),
            (Node(false, true, Err(leader.clone())), Answer::NotLeading(leader.clone())),
            (Node(false, true, Err(None)), Answer::NotLeading(None)),
            (Node(false, false, Err(leader)), Answer::Unknown),
        ] {
            assert_eq!(judge(&node, false), None);
            assert_eq!(judge(&node, true), Some(answer));
        }
        assert_eq!(judge(&Node(true, true, Ok(())), false), Some(Answer::Stopping));
    }
}
