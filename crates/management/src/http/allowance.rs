//! The memory of one request and its answer.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::future::{Either, select};
use futures::{Stream, StreamExt as _};
use server::http_budget::{GivesWay, HttpBudget, OverBudget, Pool};
use server::limits::BODY_BYTES_MAX;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::http::answer::ApiError;
use crate::json::bounded::count_values;
use crate::limits::{
    HTTP_BYTES_PER_S_MIN, HTTP_REQUEST_BYTES, HTTP_SENT_AT_ONCE, HTTP_TRANSFER_GRACE,
    HTTP_VALUE_BYTES, definitions_values_max,
};

/// Lets a request in when there is memory for it, and sends its answer.
pub(crate) async fn bound(
    State((budget, answers)): State<(Arc<HttpBudget>, Pool)>,
    mut request: Request,
    next: Next,
) -> Response {
    let taken = Taken {
        budget,
        answers,
        state: Mutex::default(),
        content: Mutex::default(),
        gave_way: Notify::new(),
    };
    if let Err(over) = taken.budget.take_soon(answers, HTTP_REQUEST_BYTES).await {
        return ApiError::from(over).into_response();
    }
    taken.state().held = HTTP_REQUEST_BYTES;
    let taken = Arc::new(taken);
    request.extensions_mut().insert(Allowance(Some(Arc::clone(&taken))));
    let response = next.run(request).await;
    taken.forget_body();
    taken.send(response)
}

/// The memory of one request, as its handler sees it. Without limit where there is no budget.
#[derive(Clone, Default, Debug)]
pub(crate) struct Allowance(Option<Arc<Taken>>);

impl<S: Sync> FromRequestParts<S> for Allowance {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}

impl Allowance {
    /// The allowance of a request.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// Takes memory for the answer until it is sent.
    ///
    /// # Errors
    /// [`OverBudget`] if there is none.
    pub(crate) fn hold(&self, bytes: usize) -> Result<(), OverBudget> {
        let Some(taken) = &self.0 else { return Ok(()) };
        taken.budget.take(taken.answers, bytes)?;
        taken.state().held += bytes;
        Ok(())
    }

    /// Takes memory for the answer, and waits a moment for it.
    ///
    /// # Errors
    /// [`OverBudget`] if there is none.
    pub(crate) async fn hold_soon(&self, bytes: usize) -> Result<(), OverBudget> {
        let Some(taken) = &self.0 else { return Ok(()) };
        taken.budget.take_soon(taken.answers, bytes).await?;
        taken.state().held += bytes;
        Ok(())
    }

    /// Gives back memory that was held.
    pub(crate) fn release(&self, bytes: usize) {
        let Some(taken) = &self.0 else { return };
        let held = &mut taken.state().held;
        // A transfer that gave way holds nothing.
        let bytes = bytes.min(*held);
        *held -= bytes;
        taken.budget.give_back(taken.answers, bytes);
    }

    /// Lets the request have a longer body: a tool of the machine itself sends it.
    pub(crate) fn is_for_local_tool(&self) {
        if let Some(taken) = &self.0 {
            taken.state().is_local_tool = true;
        }
    }

    /// Reads a body, and takes memory for it and for the values in it until the request is answered.
    ///
    /// # Errors
    /// [`ApiError`] if the body is too large, broken, or there is no memory for it.
    pub(crate) async fn read(&self, headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
        let Some(taken) = &self.0 else {
            let body = axum::body::to_bytes(body, BODY_BYTES_MAX).await;
            return body.map_err(|_| ApiError::body_too_large());
        };
        taken.read(headers, body).await
    }
}

/// The memory that a request and its answer have taken; given back on drop.
#[derive(Debug)]
pub(super) struct Taken {
    budget: Arc<HttpBudget>,
    /// The pool of the answer.
    answers: Pool,
    state: Mutex<TakenState>,
    content: Mutex<Option<Content>>,
    /// Notified when the body that is read gives way.
    gave_way: Notify,
}

#[derive(Default, Debug)]
struct TakenState {
    /// Bytes of the answer.
    held: usize,
    /// Bytes of the body.
    read: usize,
    is_local_tool: bool,
    transfer: Option<Transfer>,
}

/// Movement of bytes over the socket.
#[derive(Debug)]
struct Transfer {
    turn: Turn,
    is_answer: bool,
}

/// The side that a transfer waits for.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// The client, for which the bytes that have moved are enough until this time.
    Client(Instant),
    /// The broker, which makes the next piece. The client has this time after that.
    Broker(Duration),
}

impl Turn {
    /// The time that the client has left.
    fn left(self, now: Instant) -> Duration {
        match self {
            Self::Client(until) => until.saturating_duration_since(now),
            Self::Broker(left) => left,
        }
    }
}

/// The part of an answer that is not sent yet.
#[derive(Debug)]
struct Content {
    body: axum::body::BodyDataStream,
    /// The rest of the last piece.
    piece: Bytes,
}

impl Taken {
    fn state(&self) -> MutexGuard<'_, TakenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(self: &Arc<Self>, pool: Pool, is_answer: bool) {
        let turn = match is_answer {
            true => Turn::Broker(HTTP_TRANSFER_GRACE),
            false => Turn::Client(Instant::now() + HTTP_TRANSFER_GRACE),
        };
        self.state().transfer = Some(Transfer { turn, is_answer });
        let transfer = Arc::downgrade(self);
        self.budget.follow_transfer(pool, transfer);
    }

    fn moved(&self, bytes: usize) {
        if let Some(transfer) = &mut self.state().transfer {
            let now = Instant::now();
            let earned = Duration::from_secs(bytes as u64) / HTTP_BYTES_PER_S_MIN;
            let left = (transfer.turn.left(now) + earned).min(HTTP_TRANSFER_GRACE);
            transfer.turn = Turn::Client(now + left);
        }
    }

    /// Notes that the client has taken all pieces so far.
    fn wants_more(&self) {
        if let Some(transfer) = &mut self.state().transfer {
            transfer.turn = Turn::Broker(transfer.turn.left(Instant::now()));
        }
    }

    async fn read(self: &Arc<Self>, headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
        let announced =
            headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let bytes_max = self.budget.body_bytes_max(self.state().is_local_tool);
        let mut read = Vec::with_capacity(announced.unwrap_or(0).min(BODY_BYTES_MAX));
        let announced = read.capacity();
        let mut body = body.into_data_stream();
        self.begin(Pool::Bodies, false);
        loop {
            let piece = match select(body.next(), pin!(self.gave_way.notified())).await {
                Either::Left((Some(piece), _)) => piece,
                Either::Left((None, _)) => break,
                Either::Right(_) => {
                    let reason = "the body came too slowly while others needed the memory";
                    return Err(ApiError::unavailable(reason));
                }
            };
            let piece = piece.map_err(|_| ApiError::bad_request("the body cannot be read"))?;
            if read.len() + piece.len() > bytes_max {
                return Err(ApiError::body_too_large());
            }
            let before = if read.len() > announced { read.capacity() } else { read.len() };
            read.extend_from_slice(&piece);
            let after = if read.len() > announced { read.capacity() } else { read.len() };
            self.take_for_body(after - before).await?;
            self.moved(piece.len());
        }
        self.state().transfer = None;
        let values = count_values(&read);
        // More values are refused by whoever parses them.
        if values <= definitions_values_max(read.len()) {
            self.take_for_body(values * HTTP_VALUE_BYTES).await?;
        }
        Ok(read.into())
    }

    async fn take_for_body(&self, bytes: usize) -> Result<(), OverBudget> {
        self.budget.take_soon(Pool::Bodies, bytes).await?;
        self.state().read += bytes;
        Ok(())
    }

    fn forget_body(&self) {
        let mut state = self.state();
        let read = std::mem::take(&mut state.read);
        state.transfer = None;
        drop(state);
        self.budget.give_back(Pool::Bodies, read);
    }

    /// The answer, which is sent in pieces. A small one goes as it is.
    fn send(self: Arc<Self>, response: Response) -> Response {
        let (mut parts, body) = response.into_parts();
        if let Some(bytes) = body.size_hint().exact() {
            let Ok(size) = usize::try_from(bytes) else {
                return ApiError::internal("too long").into_response();
            };
            if size <= HTTP_REQUEST_BYTES {
                return Response::from_parts(parts, body);
            }
            if let Err(over) = Allowance(Some(Arc::clone(&self))).hold(size) {
                return ApiError::from(over).into_response();
            }
            parts.headers.entry(CONTENT_LENGTH).or_insert(HeaderValue::from(bytes));
        }
        let content = Content { body: body.into_data_stream(), piece: Bytes::new() };
        *self.content.lock().unwrap_or_else(PoisonError::into_inner) = Some(content);
        self.begin(self.answers, true);
        Response::from_parts(parts, Body::from_stream(Unsent(self)))
    }
}

impl GivesWay for Taken {
    fn behind(&self, now: Instant) -> Option<Duration> {
        // A client that waits for the broker is not slow.
        let Turn::Client(until) = self.state().transfer.as_ref()?.turn else { return None };
        now.checked_duration_since(until).filter(|behind| !behind.is_zero())
    }

    fn give_way(&self) -> bool {
        let mut state = self.state();
        let Some(transfer) = &state.transfer else { return false };
        if !transfer.is_answer {
            // The reader of the body gives the room back.
            state.transfer = None;
            self.gave_way.notify_one();
            return false;
        }
        drop(state);
        // A transfer that moves just now may have to give way later.
        let Ok(mut content) = self.content.try_lock() else { return false };
        let ended = content.take();
        drop(content);
        drop(ended);
        let held = {
            let mut state = self.state();
            state.transfer = None;
            std::mem::take(&mut state.held)
        };
        self.budget.give_back(self.answers, held);
        true
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let (held, read) = {
            let state = self.state();
            (state.held, state.read)
        };
        self.budget.give_back(self.answers, held);
        self.budget.give_back(Pool::Bodies, read);
    }
}

/// An answer that is being sent.
struct Unsent(Arc<Taken>);

impl Stream for Unsent {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut content = self.0.content.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(unsent) = &mut *content else {
            let reason = "the client was too slow while others needed the memory";
            return Poll::Ready(Some(Err(axum::Error::new(std::io::Error::other(reason)))));
        };
        self.0.wants_more();
        while unsent.piece.is_empty() {
            match std::task::ready!(unsent.body.poll_next_unpin(context)) {
                Some(Ok(piece)) => unsent.piece = piece,
                end => return Poll::Ready(end),
            }
        }
        let size = unsent.piece.len().min(HTTP_SENT_AT_ONCE);
        let piece = unsent.piece.split_to(size);
        self.0.moved(size);
        Poll::Ready(Some(Ok(piece)))
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::StatusCode;
    use axum::middleware::from_fn_with_state;
    use axum::routing::{get, post};
    use futures::stream;
    use tower::ServiceExt as _;

    use super::*;
    use crate::http::extract;

    const SIZE: usize = 1024 * 1024;

    /// A service with answers of this size, and one that reads bodies.
    fn service(budget: &Arc<HttpBudget>) -> Router {
        let layer = from_fn_with_state((Arc::clone(budget), Pool::Answers), bound);
        Router::new()
            .route("/answer", get(|| async { "x".repeat(SIZE) }))
            .route(
                "/body",
                post(|extract::Body(body): extract::Body| async move { body.len().to_string() }),
            )
            .layer(layer)
    }

    async fn ask(service: &Router, path: &str, body: Body) -> Response {
        let mut request = Request::new(body);
        if path == "/body" {
            *request.method_mut() = axum::http::Method::POST;
        }
        *request.uri_mut() = path.parse().unwrap();
        service.clone().oneshot(request).await.unwrap()
    }

    /// The response of which a client has got the first piece.
    async fn begun(response: Response) -> Response {
        let (parts, body) = response.into_parts();
        let mut rest = body.into_data_stream();
        let first = rest.next().await;
        let pieces = stream::iter(first).chain(rest);
        Response::from_parts(parts, Body::from_stream(pieces))
    }

    async fn size_of(response: Response) -> Option<usize> {
        Some(axum::body::to_bytes(response.into_body(), usize::MAX).await.ok()?.len())
    }

    #[tokio::test(start_paused = true)]
    async fn answer_is_held_until_it_is_sent() {
        let budget = HttpBudget::of(4 * (SIZE + HTTP_REQUEST_BYTES));
        let service = service(&budget);
        let first = ask(&service, "/answer", Body::empty()).await;
        assert_eq!(budget.taken(Pool::Answers), SIZE + HTTP_REQUEST_BYTES);
        assert_eq!(first.headers()[CONTENT_LENGTH], SIZE.to_string());
        assert_eq!(size_of(first).await, Some(SIZE));
        assert_eq!(budget.taken(Pool::Answers), 0);
        let dropped = ask(&service, "/answer", Body::empty()).await;
        drop(dropped);
        assert_eq!(budget.taken(Pool::Answers), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn answer_that_nobody_reads_gives_way() {
        let budget = HttpBudget::of(4 * (SIZE + 2 * HTTP_REQUEST_BYTES));
        let service = service(&budget);
        let unread = begun(ask(&service, "/answer", Body::empty()).await).await;
        let refused = ask(&service, "/answer", Body::empty()).await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        tokio::time::advance(HTTP_TRANSFER_GRACE * 2).await;
        let second = ask(&service, "/answer", Body::empty()).await;
        assert_eq!(second.status(), StatusCode::OK);
        assert_eq!((size_of(second).await, size_of(unread).await), (Some(SIZE), None));
        assert_eq!(budget.taken(Pool::Answers), 0);
    }

    #[tokio::test]
    async fn answer_that_moves_just_now_gives_way_later() {
        let body = Body::from("unread").into_data_stream();
        let taken = Arc::new(Taken {
            budget: HttpBudget::of(SIZE),
            answers: Pool::Answers,
            state: Mutex::default(),
            content: Mutex::new(Some(Content { body, piece: Bytes::new() })),
            gave_way: Notify::new(),
        });
        taken.begin(Pool::Answers, true);
        let content = taken.content.lock().unwrap();
        assert!(!taken.give_way());
        drop(content);
        assert!(taken.give_way());
        assert!(!taken.give_way());
    }

    /// A busy machine may begin to send an answer late.
    #[tokio::test(start_paused = true)]
    async fn answer_that_waits_for_the_broker_does_not_give_way() {
        let budget = HttpBudget::of(4 * (SIZE + 2 * HTTP_REQUEST_BYTES));
        let service = service(&budget);
        let waiting = ask(&service, "/answer", Body::empty()).await;
        tokio::time::advance(HTTP_TRANSFER_GRACE * 2).await;
        let refused = ask(&service, "/answer", Body::empty()).await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(size_of(waiting).await, Some(SIZE));
    }

    #[tokio::test(start_paused = true)]
    async fn body_that_does_not_come_gives_way() {
        let budget = HttpBudget::of(3 * SIZE);
        let service = service(&budget);
        let begun = stream::iter([Ok::<_, axum::Error>(Bytes::from(vec![b'x'; SIZE]))]);
        let pieces = begun.chain(stream::pending());
        let unfinished = tokio::spawn({
            let service = service.clone();
            async move { ask(&service, "/body", Body::from_stream(pieces)).await }
        });
        tokio::task::yield_now().await;
        assert!(budget.taken(Pool::Bodies) >= SIZE);
        let whole = ask(&service, "/body", Body::from(vec![b'x'; SIZE])).await;
        assert_eq!((whole.status(), budget.taken(Pool::Bodies)), (StatusCode::OK, 0));
        let unfinished = unfinished.await.unwrap();
        assert_eq!(unfinished.status(), StatusCode::SERVICE_UNAVAILABLE);
    }

    #[tokio::test(start_paused = true)]
    async fn values_of_a_body_are_held_too() {
        let budget = HttpBudget::of(SIZE);
        let service = service(&budget);
        let list = |values: usize| Body::from(format!("[{}0]", "0,".repeat(values)));
        let most = SIZE / 2 / (HTTP_VALUE_BYTES + 2);
        assert_eq!(ask(&service, "/body", list(most - 10)).await.status(), StatusCode::OK);
        let refused = ask(&service, "/body", list(most + 10)).await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(budget.taken(Pool::Bodies), 0);
    }
}
