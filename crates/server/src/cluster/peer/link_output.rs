//! The way of frames out of a link.
//!
//! Whoever flushes the queue writes to the socket itself, as far as the socket takes it at once: a frame of the
//! replicator then leaves without a wake-up of the thread of the links. That thread writes what the socket does not
//! take, long queues, and everything with TLS.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use bytes::{Buf as _, Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::Notify;

use super::traffic::Traffic;
use crate::cluster::frames::send_queue::SendQueue;
use crate::cluster::frames::wire::Channel;
use crate::limits::LINK_FLUSH_BYTES_MAX;

/// The waiting frames of a link, and the way to its socket.
#[derive(Debug)]
pub(crate) struct LinkOutput {
    queue: SendQueue,
    /// Bytes that have left the queue and wait for the socket. Locked by the one who writes.
    unsent: Mutex<BytesMut>,
    /// The socket, which the task of the link owns; none with TLS.
    socket: Weak<OwnedWriteHalf>,
    traffic: Arc<Traffic>,
    /// Told when the thread of the links must write.
    pub(in crate::cluster) wakes: Notify,
}

/// The rest that a write to the socket has left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::cluster) enum Remaining {
    /// No rest.
    Nothing,
    /// Frames in the queue.
    Frames,
    /// Bytes for which the socket has no room now.
    Bytes,
}

impl LinkOutput {
    /// An empty output. Without a socket, only the thread of the links writes, with [`LinkOutput::take`].
    pub(in crate::cluster) fn new(socket: Weak<OwnedWriteHalf>, traffic: Arc<Traffic>) -> Self {
        let (queue, unsent) = (SendQueue::default(), Mutex::default());
        Self { queue, unsent, socket, traffic, wakes: Notify::new() }
    }

    /// Adds a frame, which leaves with the next [`LinkOutput::flush`] at the latest; false if there is no room.
    ///
    /// # Panics
    /// For a frame that is longer than any of its channel.
    pub(crate) fn add(&self, channel: Channel, frame: Bytes) -> bool {
        self.queue.add(channel, frame)
    }

    /// True if frames were added since the last [`LinkOutput::flush`].
    pub(crate) fn has_news(&self) -> bool {
        self.queue.has_news()
    }

    /// Lets the frames leave that were added since the last call. Never waits.
    pub(crate) fn flush(&self) {
        if self.queue.take_news() && !self.flush_now() {
            self.wakes.notify_one();
        }
    }

    /// Writes everything if it is little and the socket takes it. False if the thread of the links must go on.
    fn flush_now(&self) -> bool {
        if self.queue.bytes() > LINK_FLUSH_BYTES_MAX {
            return false;
        }
        let Some(socket) = self.socket.upgrade() else { return false };
        // Whoever writes now may have looked at the queue before the frame was added.
        let Some(mut unsent) = self.unsent.try_lock() else { return false };
        // An error comes again when the thread of the links writes.
        self.write_unsent(&socket, &mut unsent).is_ok_and(|left| left == Remaining::Nothing)
    }

    /// Writes waiting frames, about [`LINK_WRITE_BYTES`](crate::limits::LINK_WRITE_BYTES) at the most, as far as the
    /// socket takes them.
    ///
    /// # Errors
    /// Those of the socket; it is of no use any more.
    pub(in crate::cluster) fn write(&self, socket: &OwnedWriteHalf) -> io::Result<Remaining> {
        self.write_unsent(socket, &mut self.unsent.lock())
    }

    fn write_unsent(&self, socket: &OwnedWriteHalf, bytes: &mut BytesMut) -> io::Result<Remaining> {
        // What is added from now on is new.
        self.queue.take_news();
        if bytes.is_empty() {
            self.queue.take(bytes);
        }
        while !bytes.is_empty() {
            match socket.try_write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes.advance(written);
                    self.sent(written);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Remaining::Bytes);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(if self.queue.bytes() == 0 { Remaining::Nothing } else { Remaining::Frames })
    }

    /// Takes waiting frames as chunks, if there is no socket: the caller writes them.
    pub(in crate::cluster) fn take(&self, out: &mut BytesMut) {
        self.queue.take(out);
    }

    /// Counts bytes that were written.
    pub(in crate::cluster) fn sent(&self, bytes: usize) {
        self.traffic.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.queue.bytes()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::cluster::frames::wire::FrameReader;

    async fn pair() -> (LinkOutput, TcpStream, Arc<OwnedWriteHalf>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (other, _) = listener.accept().await.unwrap();
        let socket = Arc::new(socket.into_split().1);
        // What nobody has waited for is not known to be ready.
        socket.writable().await.unwrap();
        let output = LinkOutput::new(Arc::downgrade(&socket), Arc::default());
        (output, other, socket)
    }

    async fn is_woken(output: &LinkOutput) -> bool {
        tokio::select! {
            biased;
            () = output.wakes.notified() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn flushed_frame_leaves_without_a_wake_up() {
        let (output, mut other, _socket) = pair().await;
        assert!(output.add(Channel::Ordered, Bytes::from_static(b"frame")));
        output.flush();
        assert!(!is_woken(&output).await);
        assert_eq!(output.bytes(), 0);
        let mut reader = FrameReader::default();
        other.read_buf(&mut reader.bytes).await.unwrap();
        let frame = reader.next().unwrap();
        assert_eq!(frame, Some((Channel::Ordered, Bytes::from_static(b"frame"))));
        let sent = output.traffic.sent_bytes.load(Ordering::Relaxed);
        assert_eq!(sent, (crate::cluster::frames::wire::CHUNK_HEADER_BYTES + 5) as u64);
    }

    #[tokio::test]
    async fn long_queue_is_left_to_the_thread_of_the_links() {
        let (output, _other, _socket) = pair().await;
        let long = Bytes::from(vec![0; LINK_FLUSH_BYTES_MAX + 1]);
        assert!(output.add(Channel::Bulk, long));
        output.flush();
        assert!(is_woken(&output).await);
        assert_eq!(output.bytes(), LINK_FLUSH_BYTES_MAX + 1);
    }

    #[tokio::test]
    async fn frames_stay_in_order_and_whole_while_the_socket_is_full() {
        let (output, mut other, socket) = pair().await;
        let frames: Vec<Bytes> = (0..2000_usize)
            .map(|at| Bytes::from(vec![u8::try_from(at % 251).unwrap(); at * 7 % 5000]))
            .collect();
        let sender = async {
            for frame in &frames {
                assert!(output.add(Channel::Ordered, frame.clone()));
                output.flush();
            }
            while output.write(&socket).unwrap() != Remaining::Nothing {
                socket.writable().await.unwrap();
            }
        };
        let receiver = async {
            let (mut reader, mut received) = (FrameReader::default(), Vec::new());
            while received.len() < frames.len() {
                other.read_buf(&mut reader.bytes).await.unwrap();
                while let Some((_, frame)) = reader.next().unwrap() {
                    received.push(frame);
                }
            }
            received
        };
        let ((), received) = tokio::join!(sender, receiver);
        assert_eq!(received, frames);
    }

    #[tokio::test]
    async fn link_that_has_ended_keeps_no_socket() {
        let (output, mut other, socket) = pair().await;
        assert!(output.add(Channel::Control, Bytes::from_static(b"goodbye")));
        output.flush();
        drop(socket);
        assert!(output.add(Channel::Control, Bytes::from_static(b"late")));
        output.flush();
        let mut all = Vec::new();
        other.read_to_end(&mut all).await.unwrap();
        assert_eq!(all.len(), crate::cluster::frames::wire::CHUNK_HEADER_BYTES + 7);
    }
}
