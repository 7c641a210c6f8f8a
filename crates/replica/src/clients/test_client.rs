//! The end of a client in tests.

use session::Outbox;

use super::ClientEnd;

/// The end of a client whose socket takes nothing.
#[derive(Default, Debug)]
pub(crate) struct Client {
    pub(crate) outbox: Outbox,
    pub(crate) is_closing: bool,
}

impl ClientEnd for Client {
    fn frame_max(&self) -> u32 {
        4096
    }

    fn append<T>(&mut self, append: impl FnOnce(&mut Outbox) -> T) -> T {
        append(&mut self.outbox)
    }

    fn set_closing(&mut self) {
        self.is_closing = true;
    }

    fn is_closing(&self) -> bool {
        self.is_closing
    }

    fn set_stalled(&mut self) {}

    fn unsent(&self) -> u64 {
        self.outbox.len()
    }
}
