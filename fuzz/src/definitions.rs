//! Definitions: taken whole or not at all, and what is given out is taken again and changes nothing.

use std::cell::RefCell;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use serde_json::Value;

use crate::node::Node;

/// Every so many definitions the node is started again with them.
const RESTART_EVERY: usize = 4;

thread_local! {
    /// The node, as long as it has taken nothing.
    static NODE: RefCell<Option<Node>> = const { RefCell::new(None) };
}

/// Checks the JSON of a definitions file.
pub fn check(input: &[u8]) {
    let mut node = NODE.take().unwrap_or_else(Node::new);
    let before = export(&node);
    let status = import(&node, input.to_vec());
    let after = export(&node);
    if !status.is_success() {
        assert!(status.is_client_error(), "{status}");
        assert_eq!(after, before, "all or nothing");
        return NODE.set(Some(node));
    }
    assert!(serde_json::from_slice::<Value>(input).is_ok_and(|value| value.is_object()));
    let bytes = serde_json::to_vec(&after).expect("JSON");
    assert!(import(&node, bytes).is_success(), "what is given out is taken: {after}");
    assert_eq!(unexpired(export(&node)), unexpired(after.clone()), "taken twice");
    if input.len().is_multiple_of(RESTART_EVERY) {
        node.restart();
        let (is, was) = (lasting(export(&node)), lasting(after));
        assert_eq!(unexpired(is), unexpired(was), "after a restart");
    }
}

/// The part of an export that no queue TTL removes meanwhile, as on a slow machine: without queues and bindings, if
/// anything expires.
fn unexpired(mut export: Value) -> Value {
    if export.to_string().contains("expires") {
        for kind in ["queues", "bindings"] {
            export[kind] = Value::Null;
        }
    }
    export
}

/// The part of an export that outlives the process: without transient queues and exchanges, and the bindings of both.
fn lasting(mut export: Value) -> Value {
    let objects = |export: &Value, kind: &str| export[kind].as_array().cloned().unwrap_or_default();
    let mut lost = Vec::new();
    for (kind, binding_kind) in [("queues", "queue"), ("exchanges", "exchange")] {
        let (kept, transient): (Vec<Value>, Vec<Value>) =
            objects(&export, kind).into_iter().partition(|object| object["durable"] == true);
        export[kind] = kept.into();
        let ends = transient.into_iter().map(|object| {
            (object["vhost"].clone(), object["name"].clone(), Value::from(binding_kind))
        });
        lost.extend(ends);
    }
    let is_lost = |binding: &Value, name: &str, kind: Value| {
        lost.contains(&(binding["vhost"].clone(), binding[name].clone(), kind))
    };
    let mut bindings = objects(&export, "bindings");
    bindings.retain(|binding| {
        !is_lost(binding, "source", "exchange".into())
            && !is_lost(binding, "destination", binding["destination_type"].clone())
    });
    export["bindings"] = bindings.into();
    export
}

fn request(node: &Node, method: Method, body: Vec<u8>) -> Request<Body> {
    let request = Request::builder().method(method).uri("/api/definitions");
    let request = request.header("authorization", node.login()).header("host", "localhost");
    request.header("content-type", "application/json").body(body.into()).expect("a request")
}

fn import(node: &Node, definitions: Vec<u8>) -> StatusCode {
    node.ask(request(node, Method::POST, definitions)).0
}

fn export(node: &Node) -> Value {
    let (status, _, body) = node.ask(request(node, Method::GET, Vec::new()));
    assert_eq!(status, StatusCode::OK);
    serde_json::from_slice(&body).expect("definitions are JSON")
}
