//! The handshake of a link or stream over a socket: hello, hello, proof of the dialer, proof of the acceptor.
//!
//! The dialer proves itself first: a stranger who connects to a node learns its hello and nothing else. A side that
//! refuses the other one tells it the code of the reason.

pub(crate) mod hello;

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::peer::Peer;
use super::refusal::Refusal;
use crate::cluster::handshake::hello::{
    CheckContext, EXPORTER_BYTES, Hello, HelloError, Message, MessageError, MessageReader, Secret,
    Side, Transcript, judge, refusal_message,
};

/// The reason why a handshake has failed.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// One side refuses the other.
    Refused(Refusal),
    /// The socket has failed, or the peer has closed it.
    Io(io::Error),
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Refusal> for HandshakeError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<MessageError> for Refusal {
    fn from(error: MessageError) -> Self {
        match error {
            MessageError::Tls => Self::SpeaksTls,
            MessageError::NotALink => Self::NotALink,
            MessageError::TooLong => Self::TooLong,
            MessageError::Malformed => Self::Malformed,
        }
    }
}

impl From<HelloError> for Refusal {
    fn from(error: HelloError) -> Self {
        match error {
            HelloError::NotALink => Self::NotALink,
            HelloError::Version { oldest, newest } => Self::Version { oldest, newest },
            HelloError::Purpose(purpose) => Self::Purpose(purpose),
            HelloError::Malformed => Self::Malformed,
        }
    }
}

/// The side of a handshake that this node plays.
#[derive(Clone, Copy)]
pub(crate) struct Own<'a> {
    pub(crate) side: Side,
    /// The hello, with a nonce that was never used before.
    pub(crate) hello: &'a Hello,
    pub(crate) secret: &'a Secret,
    /// Bytes that both ends derive from the TLS session; none without TLS.
    pub(crate) exporter: Option<[u8; EXPORTER_BYTES]>,
    pub(crate) known: CheckContext<'a>,
    /// Admits a listed node that has proved itself, or refuses it. The acceptor asks before its own proof.
    pub(crate) admit: &'a (dyn Fn(&Hello) -> Result<(), Refusal> + Sync),
}

impl std::fmt::Debug for Own<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Own").field("side", &self.side).finish_non_exhaustive()
    }
}

/// Shakes hands. Returns the peer's hello, which is proved, and the peer that it is from.
///
/// # Errors
/// [`HandshakeError`]. The peer is told the reason of a refusal.
pub(crate) async fn shake_hands<S>(
    socket: &mut S,
    own: Own<'_>,
) -> Result<(Hello, Arc<Peer>), HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let done = converse(socket, own).await;
    if let Err(HandshakeError::Refused(refusal)) = &done
        && !matches!(refusal, Refusal::FromPeer(_))
    {
        // The peer may be gone.
        let _ = socket.write_all(&refusal_message(refusal.code())).await;
        let _ = socket.flush().await;
    }
    done
}

async fn converse<S>(socket: &mut S, own: Own<'_>) -> Result<(Hello, Arc<Peer>), HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Own { side, hello, secret, exporter, known, admit } = own;
    match side {
        Side::Dialer => {
            let ours = hello.encode();
            send(socket, &Message::Hello(ours.clone())).await?;
            let (theirs, peer) = receive_hello(socket, hello).await?;
            let transcript = Transcript { dialer: &ours, acceptor: &theirs, exporter };
            let proof = transcript.proof(secret, Side::Dialer);
            send(socket, &Message::Proof(proof)).await?;
            check_proof(socket, &transcript, secret, Side::Acceptor).await?;
            let of = judge(&peer, &known)?;
            if peer.purpose != hello.purpose {
                return Err(Refusal::Malformed.into());
            }
            admit(&peer)?;
            Ok((peer, of))
        }
        Side::Acceptor => {
            let (theirs, peer) = receive_hello(socket, hello).await?;
            let ours = Hello { purpose: peer.purpose, ..hello.clone() }.encode();
            send(socket, &Message::Hello(ours.clone())).await?;
            let transcript = Transcript { dialer: &theirs, acceptor: &ours, exporter };
            check_proof(socket, &transcript, secret, Side::Dialer).await?;
            let of = judge(&peer, &known)?;
            admit(&peer)?;
            let proof = transcript.proof(secret, Side::Acceptor);
            send(socket, &Message::Proof(proof)).await?;
            Ok((peer, of))
        }
    }
}

async fn send<S: AsyncWrite + Unpin>(socket: &mut S, message: &Message) -> io::Result<()> {
    socket.write_all(&message.encode()).await?;
    socket.flush().await
}

/// Receives a message. Never reads behind it.
async fn receive<S: AsyncRead + Unpin>(socket: &mut S) -> Result<Message, HandshakeError> {
    let (mut reader, mut room) = (MessageReader::default(), [0; 1024]);
    loop {
        if let Some(message) = reader.next().map_err(Refusal::from)? {
            return match message {
                Message::Refusal(code) => Err(Refusal::FromPeer(code).into()),
                message @ (Message::Hello(_) | Message::Proof(_)) => Ok(message),
            };
        }
        let missing = reader.missing().map_err(Refusal::from)?.min(room.len());
        let room = room.get_mut(..missing).unwrap_or_default();
        match socket.read(room).await? {
            0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            count => reader.add(room.get(..count).unwrap_or_default()),
        }
    }
}

/// Receives a hello, as it was sent and as it was read.
async fn receive_hello<S: AsyncRead + Unpin>(
    socket: &mut S,
    own: &Hello,
) -> Result<(Vec<u8>, Hello), HandshakeError> {
    let Message::Hello(bytes) = receive(socket).await? else {
        return Err(Refusal::Malformed.into());
    };
    let hello = Hello::decode(&bytes).map_err(Refusal::from)?;
    // Before any proof, so that nothing is proved to an echo.
    if hello.node == own.node || hello.nonce == own.nonce {
        return Err(Refusal::OwnNode.into());
    }
    Ok((bytes, hello))
}

async fn check_proof<S: AsyncRead + Unpin>(
    socket: &mut S,
    transcript: &Transcript<'_>,
    secret: &Secret,
    side: Side,
) -> Result<(), HandshakeError> {
    let Message::Proof(proof) = receive(socket).await? else {
        return Err(Refusal::Malformed.into());
    };
    if transcript.proves(secret, side, &proof) { Ok(()) } else { Err(Refusal::Secret.into()) }
}
