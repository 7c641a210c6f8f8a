//! Values that queue arguments and policy keys share, with their words on the wire.

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The value that `word` means.
            pub fn parse(word: &[u8]) -> Option<Self> {
                match std::str::from_utf8(word).ok()? {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// What happens when a queue is full: `x-overflow`, `overflow` (spec 4).
    Overflow {
        /// The oldest messages make room.
        DropHead = "drop-head",
        /// New messages are refused.
        RejectPublish = "reject-publish",
        /// New messages are refused and dead-lettered.
        RejectPublishDlx = "reject-publish-dlx",
    }
}

words! {
    /// What happens to a dead letter that has nowhere to go: `dead-letter-strategy` (spec 3.8).
    DeadLetterStrategy {
        /// It is dropped and counted.
        AtMostOnce = "at-most-once",
        /// Its queue keeps it and offers it again when the topology changes.
        AtLeastOnce = "at-least-once",
    }
}

words! {
    /// Which returned messages wait before they are delivered again: `delayed-retry-type` (spec 8.3).
    DelayedRetryType {
        /// All of them.
        All = "all",
        /// Those whose delivery counts as failed.
        Failed = "failed",
        /// Those that were returned without failing.
        Returned = "returned",
        /// None.
        Disabled = "disabled",
    }
}

words! {
    /// Which expired messages leave a queue: `x-expiry-order`, `expiry-order`.
    ///
    /// COMPAT: expiry order: RabbitMQ only knows the second.
    ExpiryOrder {
        /// Each at its own deadline, wherever it stands.
        Deadline = "deadline",
        /// Only at the head of the queue.
        Head = "head",
    }
}
