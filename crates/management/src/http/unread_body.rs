//! The part of a request's body that nobody has read when the answer is made.
//!
//! A server that answers and closes while the client still sends resets the connection, and most clients then report a
//! broken pipe instead of the answer: a refused login, a body that is too large, a path that does not exist.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::header::EXPECT;
use futures::StreamExt as _;
use http_body::{Frame, SizeHint};
use tokio::time::timeout;

use crate::limits::{UNREAD_BODY_BYTES_MAX, UNREAD_BODY_TIMEOUT, UNREAD_PIECE_TIMEOUT};

/// The body of a request that a handler may read.
#[derive(Debug)]
pub(super) struct UnreadBody(Arc<Mutex<Shared>>);

#[derive(Debug)]
struct Shared {
    body: Body,
    /// The client sends the body only once somebody reads it.
    is_awaited: bool,
}

impl UnreadBody {
    /// Shares the body of a request with its handlers; none if the body is empty.
    pub(super) fn take_from(request: &mut Request) -> Option<Self> {
        if request.body().is_end_stream() {
            return None;
        }
        let is_awaited = request.headers().contains_key(EXPECT);
        let body = std::mem::take(request.body_mut());
        let shared = Arc::new(Mutex::new(Shared { body, is_awaited }));
        *request.body_mut() = Body::new(Reader(Arc::clone(&shared)));
        Some(Self(shared))
    }

    /// Reads and drops what is left, within bounds.
    pub(super) async fn drop_all(self) {
        let Some(mut rest) = self.rest() else { return };
        let all = async {
            let mut bytes = 0;
            while bytes <= UNREAD_BODY_BYTES_MAX
                && let Ok(Some(Ok(piece))) = timeout(UNREAD_PIECE_TIMEOUT, rest.next()).await
            {
                bytes += piece.len();
            }
        };
        // The answer goes to a client that may still send.
        drop(timeout(UNREAD_BODY_TIMEOUT, all).await);
    }

    /// The rest of the body; none if the client waits until somebody reads.
    fn rest(&self) -> Option<BodyDataStream> {
        let mut shared = lock(&self.0);
        (!shared.is_awaited).then(|| std::mem::take(&mut shared.body).into_data_stream())
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The body as the handlers of the request read it.
struct Reader(Arc<Mutex<Shared>>);

impl HttpBody for Reader {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut shared = lock(&self.0);
        shared.is_awaited = false;
        Pin::new(&mut shared.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.0).body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        lock(&self.0).body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    /// A request whose body has three pieces, and the number of those that were read.
    fn request(has_expect: bool) -> (Request, Arc<Mutex<usize>>) {
        let read = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&read);
        let pieces = stream::iter(0..3).map(move |_| {
            *counted.lock().unwrap() += 1;
            Ok::<_, std::io::Error>(Bytes::from_static(b"piece"))
        });
        let mut request = Request::new(Body::from_stream(pieces));
        if has_expect {
            request.headers_mut().insert(EXPECT, "100-continue".parse().unwrap());
        }
        (request, read)
    }

    async fn read_of(reads: usize, has_expect: bool) -> usize {
        let (mut request, read) = request(has_expect);
        let unread = UnreadBody::take_from(&mut request).unwrap();
        let mut body = request.into_body().into_data_stream();
        for _ in 0..reads {
            assert_eq!(body.next().await.unwrap().unwrap(), "piece");
        }
        unread.drop_all().await;
        *read.lock().unwrap()
    }

    #[tokio::test]
    async fn rest_of_a_body_is_dropped_unless_the_client_waits_for_a_reader() {
        assert_eq!(read_of(0, false).await, 3);
        assert_eq!(read_of(1, false).await, 3);
        assert_eq!(read_of(0, true).await, 0);
        assert_eq!(read_of(1, true).await, 3);
    }

    #[test]
    fn empty_body_is_left_alone() {
        assert!(UnreadBody::take_from(&mut Request::new(Body::empty())).is_none());
    }
}
