//! A text on its way from the thread that writes it to the client, in pieces.

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures::stream;
use server::http_budget::OverBudget;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::http::allowance::Allowance;
use crate::http::answer::ApiError;

/// A piece, or the reason why there is no further one.
type Piece = Result<Bytes, OverBudget>;

/// The end of the writer, on a thread that may wait.
#[derive(Debug)]
pub(super) struct PieceSender {
    /// None once nothing more is sent.
    sender: Option<UnboundedSender<Piece>>,
    /// Holds the pieces that are not sent: the channel has no bound of its own.
    allowance: Allowance,
    runtime: Handle,
}

/// The end of the client.
#[derive(Debug)]
pub(super) struct PieceReceiver {
    receiver: UnboundedReceiver<Piece>,
    allowance: Allowance,
}

/// A channel for the pieces of an answer.
pub(super) fn pieces(allowance: Allowance) -> (PieceSender, PieceReceiver) {
    let (sender, receiver) = unbounded_channel();
    let runtime = Handle::current();
    let sender = PieceSender { sender: Some(sender), allowance: allowance.clone(), runtime };
    (sender, PieceReceiver { receiver, allowance })
}

impl PieceSender {
    /// Sends a piece, once there is memory for it.
    pub(super) fn send(&mut self, text: String) {
        let Some(sender) = &self.sender else { return };
        let held = self.runtime.block_on(self.allowance.hold_soon(text.len()));
        let is_over = held.is_err();
        let sent = sender.send(held.map(|()| text.into()));
        if is_over || sent.is_err() {
            self.sender = None;
        }
    }

    /// True once the client has gone, or has no room for more.
    pub(super) fn is_over(&self) -> bool {
        self.sender.as_ref().is_none_or(UnboundedSender::is_closed)
    }
}

impl PieceReceiver {
    /// Waits for the next piece.
    async fn next(&mut self) -> Option<Piece> {
        let piece = self.receiver.recv().await;
        if let Some(Ok(piece)) = &piece {
            self.allowance.release(piece.len());
        }
        piece
    }

    /// The answer with all pieces, once the first is there.
    pub(super) async fn answer(mut self, content_type: impl IntoResponse) -> Response {
        let first = match self.next().await {
            Some(Ok(first)) => first,
            Some(Err(over)) => return ApiError::from(over).into_response(),
            None => return ApiError::internal("the metrics cannot be written").into_response(),
        };
        let rest = stream::unfold(self, |mut rest| async {
            let piece = rest.next().await?;
            Some((piece.map_err(|_| axum::Error::new("no memory for the rest")), rest))
        });
        let body = Body::from_stream(futures::StreamExt::chain(stream::iter([Ok(first)]), rest));
        let mut response = content_type.into_response();
        *response.body_mut() = body;
        response
    }
}
