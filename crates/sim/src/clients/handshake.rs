//! The beginning of a connection, and the frames of a client.

use std::sync::Arc;

use amqp::method::{ConnectionOpen, ConnectionStartOk, ConnectionTuneOk, Method, write_method};
use amqp::protocol_header::AMQP_0_9_1;
use amqp::table::{Table, TableBuilder, Value};
use broker::access::Access;
use broker::time::Time;
use session::{Resumed, Session, SessionOptions, Step};

/// Largest frame, in octets.
pub(crate) const FRAME_MAX: u32 = 131_072;

/// A user who may do everything.
pub(crate) fn everything() -> Arc<Access> {
    Arc::new(Access::matching("guest".into(), ".*").expect("a valid pattern"))
}

/// A frame with a method.
pub(crate) fn frame<'a>(channel: u16, method: impl Into<Method<'a>>) -> Vec<u8> {
    let mut out = Vec::new();
    write_method(&mut out, channel, &method.into());
    out
}

/// A session behind its handshake.
pub(crate) fn session(now: Time) -> Session {
    let mut session = entry_session(now);
    session.vhost_opened(now, &mut Vec::new());
    assert!(session.is_running(), "the handshake is over");
    session
}

/// The session of the leader that adopts a client of another node, and the answer to `connection.open`.
pub(crate) fn adopted_session(entry: &Session, now: Time) -> (Session, Vec<u8>) {
    let resumed = Resumed {
        client_properties: entry.client().properties.as_ref(),
        mechanism: entry.mechanism(),
        frame_max: entry.frame_max(),
        channel_max: entry.channel_max(),
        heartbeat_s: entry.heartbeat_s(),
    };
    let mut session = Session::resumed(Arc::new(SessionOptions::default()), now, resumed);
    let mut out = Vec::new();
    session.vhost_opened(now, &mut out);
    (session, out)
}

/// A session up to `connection.open`.
pub(crate) fn entry_session(now: Time) -> Session {
    let mut session = Session::new(Arc::new(SessionOptions::default()), now);
    let mut out = Vec::new();
    let mut capabilities = TableBuilder::new();
    capabilities.insert("consumer_cancel_notify", Value::Bool(true));
    let capabilities: Table = capabilities.finish();
    let mut properties = TableBuilder::new();
    properties.insert("capabilities", Value::Table(capabilities.as_ref()));
    let properties: Table = properties.finish();
    let start = ConnectionStartOk {
        client_properties: properties.as_ref(),
        mechanism: "PLAIN",
        response: b"\0guest\0guest",
        locale: "en_US",
    };
    let tune = ConnectionTuneOk { channel_max: 2047, frame_max: FRAME_MAX, heartbeat: 0 };
    let open = ConnectionOpen { virtual_host: "/" };
    for bytes in [AMQP_0_9_1.to_vec(), frame(0, start), frame(0, tune), frame(0, open)] {
        let mut input = bytes.as_slice();
        match session.next(&mut input, &mut out) {
            Step::Login(_) => session.login_accepted(&mut out),
            Step::OpenVhost(_) => return session,
            Step::More => {}
            step => panic!("the handshake asks for {step:?}"),
        }
    }
    panic!("the client opens the vhost")
}
