//! The outgoing half of a connection: the outbox, and the task that writes it to the socket.
//!
//! Any thread with data for a client appends it to the outbox and wakes the writer, which takes everything
//! that has accumulated. The number of unsent bytes is an atomic, read without a lock by readers, the core
//! and the writer.

use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use session::Outbox;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::clock::own_time;
use crate::limits::{
    IDLE_OUTBOX_AFTER, IDLE_OUTBOX_BYTES, UNSENT_BYTES_LOW, WRITE_PARTS, WRITE_TURN_BYTES,
};
use crate::sockets::socket::Writer;

/// The outgoing half of a connection, shared by all threads that send.
#[derive(Default, Debug)]
pub(crate) struct SocketWriter {
    outbox: Mutex<Outbox>,
    /// Bytes appended and not yet written.
    unsent: AtomicU64,
    /// Bytes written so far.
    written: AtomicU64,
    /// Number of writes so far.
    writes: AtomicU64,
    /// True if the core waits for a report that fewer bytes are unsent.
    stalled: AtomicBool,
    /// True after `connection.close` was sent.
    closing: AtomicBool,
    /// True if nothing more will be appended: the writer writes the rest and closes the socket.
    over: AtomicBool,
    /// True if nothing more will be appended: the writer writes the rest and returns the socket.
    handed_over: AtomicBool,
    writer: Notify,
    reader: Notify,
}

impl SocketWriter {
    /// Appends to the outbox; the bytes are sent after `wake_writer`.
    pub(crate) fn append<T>(&self, append: impl FnOnce(&mut Outbox) -> T) -> T {
        let mut outbox = self.outbox.lock();
        let before = outbox.len();
        let result = append(&mut outbox);
        self.unsent.fetch_add(outbox.len() - before, Ordering::Relaxed);
        result
    }

    /// Appends bytes and wakes the writer.
    pub(crate) fn send(&self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.append(|outbox| outbox.tail().extend_from_slice(bytes));
            self.wake_writer();
        }
    }

    pub(crate) fn wake_writer(&self) {
        self.writer.notify_one();
    }

    /// Bytes not yet written.
    pub(crate) fn unsent(&self) -> u64 {
        self.unsent.load(Ordering::Relaxed)
    }

    /// Bytes written so far.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Number of writes so far.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// Requests a report when fewer bytes are unsent.
    pub(crate) fn set_stalled(&self) {
        self.stalled.store(true, Ordering::Release);
    }

    /// Notes that `connection.close` was sent, and wakes the reader.
    pub(crate) fn set_closing(&self) {
        self.closing.store(true, Ordering::Release);
        self.reader.notify_one();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Notes that nothing more will be appended, and wakes the writer.
    pub(crate) fn set_over(&self) {
        self.over.store(true, Ordering::Release);
        self.writer.notify_one();
    }

    /// Notes that nothing more will be appended, and lets the writer return the socket.
    pub(crate) fn hand_over(&self) {
        self.handed_over.store(true, Ordering::Release);
        self.writer.notify_one();
    }

    /// Waits for an event that the reader must handle: closing, or room in the outbox.
    pub(crate) async fn reader_woken(&self) {
        self.reader.notified().await;
    }

    /// Writes the outbox to the socket until the connection is over, or returns the socket once it is handed over.
    /// `report` passes the number of unsent bytes to the core when the core waits for that.
    ///
    /// # Errors
    /// If the socket fails, or the client reads nothing for `unread_timeout` although bytes wait for it
    /// ([`io::ErrorKind::TimedOut`]).
    pub(crate) async fn write<F: Future<Output = ()>>(
        &self,
        mut socket: Writer,
        unread_timeout: Duration,
        report: impl Fn(u64) -> F,
    ) -> io::Result<Option<Writer>> {
        let mut writing = Outbox::default();
        let mut turn_bytes = 0;
        loop {
            self.outbox.lock().take_into(&mut writing);
            if writing.is_empty() {
                if self.over.load(Ordering::Acquire) && self.unsent() == 0 {
                    break;
                }
                socket.flush().await?;
                if self.handed_over.load(Ordering::Acquire) && self.unsent() == 0 {
                    return Ok(Some(socket));
                }
                self.report_if_stalled(&report).await;
                self.writer_woken(&mut writing, &mut socket).await;
                turn_bytes = 0;
                continue;
            }
            while !writing.is_empty() {
                let count = write_some(&mut socket, &writing, unread_timeout).await?;
                writing.consume(count);
                let count = count as u64;
                self.written.fetch_add(count, Ordering::Relaxed);
                self.writes.fetch_add(1, Ordering::Relaxed);
                let before = self.unsent.fetch_sub(count, Ordering::Relaxed);
                if before >= UNSENT_BYTES_LOW && before - count < UNSENT_BYTES_LOW {
                    self.reader.notify_one();
                }
                self.report_if_stalled(&report).await;
                turn_bytes += count;
                if turn_bytes >= WRITE_TURN_BYTES {
                    turn_bytes = 0;
                    yield_now().await;
                }
            }
        }
        socket.shutdown().await.map(|()| None)
    }

    /// Waits for data to write. Both buffers have grown to the size of the last burst; they shrink if no
    /// other burst follows soon.
    async fn writer_woken(&self, writing: &mut Outbox, socket: &mut Writer) {
        if timeout(IDLE_OUTBOX_AFTER, self.writer.notified()).await.is_err() {
            writing.shrink(IDLE_OUTBOX_BYTES);
            socket.shrink(IDLE_OUTBOX_BYTES);
            self.outbox.lock().shrink(IDLE_OUTBOX_BYTES);
            self.writer.notified().await;
        }
    }

    /// Reports free room to the core, if the core waits for that. Bytes may be appended at any moment, so the
    /// flag is cleared only if there really is room.
    async fn report_if_stalled<F: Future<Output = ()>>(&self, report: &impl Fn(u64) -> F) {
        if !self.stalled.load(Ordering::Acquire) {
            return;
        }
        let unsent = self.unsent();
        if unsent < UNSENT_BYTES_LOW && self.stalled.swap(false, Ordering::AcqRel) {
            report(unsent).await;
        }
    }
}

async fn write_some(
    socket: &mut Writer,
    outbox: &Outbox,
    unread_timeout: Duration,
) -> io::Result<usize> {
    let count = loop {
        match try_write(socket, outbox) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                own_time::timeout(unread_timeout, socket.writable()).await??;
            }
            result => break result?,
        }
    };
    socket.flush().await?;
    if count == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(count) }
}

/// A separate function, so that a waiting connection does not hold the array of slices.
fn try_write(socket: &mut Writer, outbox: &Outbox) -> io::Result<usize> {
    let mut slices = [IoSlice::new(&[]); WRITE_PARTS];
    let filled = outbox.slices(&mut slices);
    socket.try_write_vectored(slices.get(..filled).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::AsyncReadExt as _;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn write_sends_bursts_whole_and_frees_buffers() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (_reads, writes) = listener.accept().await.unwrap().0.into_split();
        let socket_writer = Arc::new(SocketWriter::default());
        let writer = {
            let socket_writer = Arc::clone(&socket_writer);
            tokio::spawn(async move {
                let nothing = |_| std::future::ready(());
                socket_writer.write(Writer::Tcp(writes), IDLE_OUTBOX_AFTER, nothing).await
            })
        };
        let burst = vec![7; 1024 * 1024];
        let mut received = vec![0; burst.len()];
        for _ in 0..2 {
            socket_writer.send(&burst);
            client.read_exact(&mut received).await.unwrap();
            assert_eq!(received, burst);
        }
        assert_eq!(socket_writer.unsent(), 0);
        // It ends as soon as the writer has been idle for a while.
        while socket_writer.outbox.lock().tail().capacity() > IDLE_OUTBOX_BYTES {
            tokio::time::sleep(IDLE_OUTBOX_AFTER / 100).await;
        }
        socket_writer.send(b"the end");
        socket_writer.set_over();
        received.clear();
        client.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, b"the end");
        writer.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn client_that_reads_nothing_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (_reads, writes) = listener.accept().await.unwrap().0.into_split();
        let socket_writer = SocketWriter::default();
        // More than the operating system keeps for both ends.
        socket_writer.send(&vec![7; 64 * 1024 * 1024]);
        let unread_timeout = Duration::from_millis(50);
        let written = socket_writer
            .write(Writer::Tcp(writes), unread_timeout, |_| std::future::ready(()))
            .await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(socket_writer.unsent() > 0 && socket_writer.written() > 0);
        client.read_u8().await.unwrap();
    }
}
