//! The frames that wait for a link, in a queue for each channel.
//!
//! Whoever sends never waits: a frame that does not fit is dropped, and its sender sends it again. The writer takes the
//! link's own frames first, then ordered ones; bulk frames give way to both, but get one chunk of each write.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;

use super::wire::{Channel, put_chunk};
use crate::limits::{
    CHUNK_BYTES_MAX, LINK_QUEUE_BYTES_MAX, LINK_QUEUE_FRAMES_MAX, LINK_WRITE_BYTES,
};

/// The waiting frames of a link.
#[derive(Default, Debug)]
pub(crate) struct SendQueue {
    waiting: Mutex<[Waiting; Channel::ALL.len()]>,
    /// True if a frame was added since someone last took notice.
    is_new: AtomicBool,
}

/// The waiting frames of a channel.
#[derive(Default, Debug)]
struct Waiting {
    frames: VecDeque<Bytes>,
    bytes: usize,
}

impl Waiting {
    /// Writes the next chunk.
    fn put_chunk(&mut self, channel: Channel, out: &mut BytesMut) {
        let Some(frame) = self.frames.front_mut() else { return };
        let chunk = frame.split_to(frame.len().min(CHUNK_BYTES_MAX));
        let is_last = frame.is_empty();
        self.bytes -= chunk.len();
        if is_last {
            self.frames.pop_front();
        }
        put_chunk(out, channel, is_last, &chunk);
    }
}

impl SendQueue {
    /// Adds a frame; false if there is no room. A frame of any length fits into an empty queue.
    ///
    /// # Panics
    /// For a frame that is longer than any of its channel.
    pub(crate) fn add(&self, channel: Channel, frame: Bytes) -> bool {
        assert!(frame.len() <= channel.frame_bytes_max(), "a frame of {} bytes", frame.len());
        let mut all = self.waiting.lock();
        let waiting = &mut all[channel as usize];
        let fits = waiting.frames.len() < LINK_QUEUE_FRAMES_MAX
            && waiting.bytes + frame.len() <= LINK_QUEUE_BYTES_MAX;
        if !fits && !waiting.frames.is_empty() {
            return false;
        }
        waiting.bytes += frame.len();
        waiting.frames.push_back(frame);
        drop(all);
        self.is_new.store(true, Ordering::Release);
        true
    }

    /// True if a frame was added since the last [`SendQueue::take_news`].
    pub(crate) fn has_news(&self) -> bool {
        self.is_new.load(Ordering::Acquire)
    }

    /// True if a frame was added since the last call: many of them share a write, and a wake-up at the other end.
    pub(crate) fn take_news(&self) -> bool {
        self.is_new.swap(false, Ordering::AcqRel)
    }

    /// Writes waiting frames as chunks, about [`LINK_WRITE_BYTES`] at the most.
    pub(crate) fn take(&self, out: &mut BytesMut) {
        let mut all = self.waiting.lock();
        let [control, ordered, bulk] = &mut *all;
        while !control.frames.is_empty() && out.len() < LINK_WRITE_BYTES {
            control.put_chunk(Channel::Control, out);
        }
        if !bulk.frames.is_empty() {
            bulk.put_chunk(Channel::Bulk, out);
        }
        while !ordered.frames.is_empty() && out.len() < LINK_WRITE_BYTES {
            ordered.put_chunk(Channel::Ordered, out);
        }
        while !bulk.frames.is_empty() && out.len() < LINK_WRITE_BYTES {
            bulk.put_chunk(Channel::Bulk, out);
        }
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.waiting.lock().iter().map(|waiting| waiting.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::FrameReader;
    use super::*;

    fn next(queue: &SendQueue) -> Vec<(Channel, usize)> {
        let mut reader = FrameReader::default();
        queue.take(&mut reader.bytes);
        let mut frames = Vec::new();
        while let Some((channel, frame)) = reader.next().unwrap() {
            frames.push((channel, frame.len()));
        }
        frames
    }

    #[test]
    fn full_queue_drops_frames_and_keeps_its_bound() {
        let queue = SendQueue::default();
        let huge = Bytes::from(vec![0; LINK_QUEUE_BYTES_MAX + 1]);
        assert!(queue.add(Channel::Ordered, huge));
        assert!(!queue.add(Channel::Ordered, Bytes::from_static(b"x")));
        // Each channel has room of its own.
        assert!(queue.add(Channel::Control, Bytes::from_static(b"x")));
        let queue = SendQueue::default();
        for _ in 0..LINK_QUEUE_FRAMES_MAX {
            assert!(queue.add(Channel::Ordered, Bytes::from_static(b"x")));
        }
        assert!(!queue.add(Channel::Ordered, Bytes::from_static(b"x")));
        assert_eq!(queue.bytes(), LINK_QUEUE_FRAMES_MAX);
    }

    #[test]
    fn short_frames_do_not_wait_for_long_ones() {
        let queue = SendQueue::default();
        assert!(queue.add(Channel::Bulk, Bytes::from(vec![1; 16 * 1024 * 1024])));
        assert_eq!(next(&queue), []);
        assert!(queue.add(Channel::Ordered, Bytes::from_static(b"heartbeat")));
        assert!(queue.add(Channel::Control, Bytes::from_static(b"ping")));
        assert_eq!(next(&queue), [(Channel::Control, 4), (Channel::Ordered, 9)]);
    }

    #[test]
    fn bulk_frames_go_on_beside_ordered_ones() {
        let queue = SendQueue::default();
        assert!(queue.add(Channel::Bulk, Bytes::from_static(b"file")));
        for _ in 0..100 {
            assert!(queue.add(Channel::Ordered, Bytes::from(vec![1; CHUNK_BYTES_MAX])));
        }
        assert!(next(&queue).contains(&(Channel::Bulk, 4)));
    }
}
