//! Sessions that another node has begun.

use std::sync::Arc;

use amqp::method::MethodId;
use amqp::table::{TableBuilder, Value};
use broker::refusal::Refusal;
use broker::time::Time;
use session::{Alive, Resumed, Session, SessionOptions, Step, Traffic};

const START: Time = Time::from_micros(1_000_000);

fn resumed() -> Session {
    let mut properties = TableBuilder::new();
    properties.insert("connection_name", Value::LongStr(b"shop"));
    properties.table("capabilities", |all| {
        all.insert("connection.blocked", Value::Bool(true));
    });
    let properties = properties.finish();
    let resumed = Resumed {
        client_properties: properties.as_ref(),
        mechanism: "PLAIN",
        frame_max: 4096,
        channel_max: 5,
        heartbeat_s: 10,
    };
    Session::resumed(Arc::new(SessionOptions::default()), START, resumed)
}

/// `channel.open` of channel 1.
const CHANNEL_OPEN: [u8; 13] = [1, 0, 1, 0, 0, 0, 5, 0, 20, 0, 10, 0, 0xce];

#[test]
fn resumed_session_waits_for_its_vhost_and_runs() {
    let (mut session, mut out) = (resumed(), Vec::new());
    assert_eq!((session.frame_max(), session.channel_max(), session.heartbeat_s()), (4096, 5, 10));
    assert_eq!(session.mechanism(), "PLAIN");
    assert_eq!(session.client().connection_name.as_deref(), Some("shop"));
    assert!(session.client().capabilities.connection_blocked);
    let mut input = &CHANNEL_OPEN[..];
    assert!(matches!(session.next(&mut input, &mut out), Step::More));
    assert_eq!((input.len(), out.len()), (CHANNEL_OPEN.len(), 0));
    session.vhost_opened(START, &mut out);
    assert_eq!(out[7..11], [0, 10, 0, 41]);
    assert!(session.is_running());
    assert!(matches!(session.next(&mut input, &mut out), Step::Request(_)));
    // Heartbeats are those that were agreed.
    out.clear();
    let traffic = Traffic { has_written: false, is_read: true };
    assert_eq!(session.tick(START.plus_ms(6000), traffic, &mut out), Alive::Yes);
    assert_eq!(out, [8, 0, 0, 0, 0, 0, 0, 0xce]);
    assert_eq!(session.tick(START.plus_ms(30_000), traffic, &mut out), Alive::No);
}

#[test]
fn resumed_session_refuses_its_vhost_and_closes() {
    let (mut session, mut out) = (resumed(), Vec::new());
    let refusal = Refusal::not_allowed("no".to_owned());
    session.fail(START, &refusal, MethodId::NONE, &mut out);
    assert_eq!(out[7..11], [0, 10, 0, 50]);
    assert!(session.is_closing());
    let mut close_ok = &[1, 0, 0, 0, 0, 0, 4, 0, 10, 0, 51, 0xce][..];
    assert!(matches!(session.next(&mut close_ok, &mut out), Step::Over));
}

#[test]
fn standstill_of_the_broker_is_no_silence_of_the_client() {
    let (mut session, mut out) = (resumed(), Vec::new());
    session.vhost_opened(START, &mut out);
    let traffic = Traffic { has_written: true, is_read: true };
    session.stood_still(60_000_000);
    assert_eq!(session.tick(START.plus_ms(84_999), traffic, &mut out), Alive::Yes);
    assert_eq!(session.tick(START.plus_ms(85_000), traffic, &mut out), Alive::No);
    // The time for the answer to a close, too.
    session.start_closing(START);
    session.stood_still(600_000_000);
    assert_eq!(session.tick(START.plus_ms(90_000), traffic, &mut out), Alive::Yes);
}
