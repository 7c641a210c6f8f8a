//! Values out of fixed lists of words, which queue arguments and policy keys share.

use std::fmt;

/// The words that a setting may have.
#[derive(Clone, Copy)]
pub struct WordList {
    words: &'static [&'static str],
    parse: fn(&[u8]) -> Option<Word>,
}

impl WordList {
    /// The words, as clients write them.
    pub const fn words(self) -> &'static [&'static str] {
        self.words
    }

    /// The value of `word`, if it is one of the list.
    pub(crate) fn parse(self, word: &[u8]) -> Option<Word> {
        (self.parse)(word)
    }
}

impl fmt::Debug for WordList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.words).finish()
    }
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ })+) => {
        /// A value of any of the lists.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Word {
            $($name($name),)+
        }

        impl Word {
            /// The word on the wire.
            pub(crate) const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name(word) => word.as_str(),)+
                }
            }
        }

        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Debug)]
            pub enum $name {
                $($(#[$variant_doc])* $variant,)+
            }

            impl $name {
                /// All words of the list.
                pub(crate) const LIST: WordList = WordList {
                    words: &[$($word),+],
                    parse: |word| Self::parse(word).map(Word::$name),
                };

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

            impl TryFrom<Word> for $name {
                type Error = Word;

                fn try_from(word: Word) -> Result<Self, Word> {
                    if let Word::$name(word) = word { Ok(word) } else { Err(word) }
                }
            }
        )+
    };
}

words! {
    /// The treatment of messages beyond the length limit: `x-overflow`, `overflow`.
    Overflow {
        /// The oldest messages make room.
        DropHead = "drop-head",
        /// New messages are refused.
        RejectPublish = "reject-publish",
        /// New messages are refused and dead-lettered.
        RejectPublishDlx = "reject-publish-dlx",
    }

    /// The guarantee for dead letters that cannot be routed: `x-dead-letter-strategy`, `dead-letter-strategy`.
    DeadLetterStrategy {
        /// A dead letter that cannot be routed is dropped and counted.
        AtMostOnce = "at-most-once",
        /// The queue keeps the message and routes it again when the topology changes.
        AtLeastOnce = "at-least-once",
    }

    /// Returned messages that wait before they are delivered again: `x-delayed-retry-type`,
    /// `delayed-retry-type`.
    DelayedRetryType {
        /// All returned messages.
        All = "all",
        /// Messages whose delivery counts as failed.
        Failed = "failed",
        /// Messages that were returned without failing.
        Returned = "returned",
        /// No messages.
        Disabled = "disabled",
    }

    /// The deliveries of a message that count: `x-delayed-retry-count`, `x-delivery-limit-count` and the policy keys of
    /// these names.
    DeliveryCount {
        /// Failed deliveries, as `x-delivery-count` counts them.
        Delivery = "delivery",
        /// All deliveries, as `x-acquired-count` counts them.
        Acquired = "acquired",
    }

    /// The order of returned messages that wait, and of those behind them: `x-delayed-retry-order`,
    /// `delayed-retry-order`.
    DelayedRetryOrder {
        /// Others pass a returned message until its delay ends.
        Due = "due",
        /// A queue with a single active consumer delivers nothing before the delay of every returned message has ended.
        Strict = "strict",
    }

    /// The treatment of a message at the delivery limit that no dead-letter target takes: `x-delivery-limit-action`,
    /// `delivery-limit-action`.
    DeliveryLimitAction {
        /// The message is dropped and counted.
        Drop = "drop",
        /// The queue keeps the message.
        Keep = "keep",
    }

    /// The position from which expired messages leave a queue: `x-expiry-order`, `expiry-order`.
    ///
    /// COMPAT: expiry order: RabbitMQ expires messages only at the head of the queue.
    ExpiryOrder {
        /// Each message leaves at its own deadline, at any position.
        Deadline = "deadline",
        /// A message leaves only at the head of the queue.
        Head = "head",
    }
}
