//! Clients that disconnect in the middle of an answer, and clients that read the same turn.

use std::time::Duration;

use advisor_core::{Delta, ToolCallDelta};
use advisor_testkit::{Answer, Gate};
use axum::body::Body;
use axum::http::StatusCode;
use futures::future::{Either, select};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::setting::{LIMIT, post, post_in, refused, rest_of, setting, text, until};

/// A request of each route that begins a turn of conversation `c1`. The first two can resume.
pub(crate) fn bodies() -> [(&'static str, Value); 7] {
    let message =
        json!({"id": "u1", "role": "user", "content": "Hi", "parts": [{"type": "text", "text": "Hi"}]});
    [
        ("/api/chat", json!({"message": "Hi", "conversation": "c1"})),
        ("/api/ui", json!({"id": "c1", "messages": [message]})),
        ("/api/chunks", json!({"message": "Hi", "conversation": "c1"})),
        ("/api/ag-ui", json!({"threadId": "c1", "runId": "r1", "messages": [message]})),
        ("/v1/chat/completions", json!({"messages": [message], "user": "c1", "stream": true})),
        ("/v1/responses", json!({"input": "Hi", "conversation": "c1", "stream": true})),
        ("/v1/messages", json!({"messages": [message], "user": "c1", "stream": true})),
    ]
}

/// Those of them that can have their answer in one piece.
pub(crate) fn in_one_piece() -> impl Iterator<Item = (&'static str, Value)> {
    bodies().into_iter().skip(4).map(|(path, mut body)| {
        body["stream"] = json!(false);
        (path, body)
    })
}

/// Tells when it is dropped.
struct Guard(Option<oneshot::Sender<()>>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.take().map(|sender| sender.send(()));
    }
}

/// Returns a wait without an end, and a receiver that learns when it is dropped.
pub(crate) fn endless() -> (impl Future<Output = ()> + Send + 'static, oneshot::Receiver<()>) {
    let (sender, dropped) = oneshot::channel();
    let guard = Guard(Some(sender));
    let waiting = async move {
        let _guard = guard;
        std::future::pending::<()>().await;
    };
    (waiting, dropped)
}

/// A client of a protocol without resumption stops its turn, and memory keeps what it was shown.
#[tokio::test]
async fn disconnect_stops_a_turn_that_nobody_can_join() {
    for (path, body) in &bodies()[2..] {
        let (waiting, dropped) = endless();
        let setting = setting([Answer::new().text("It is").wait(waiting), Answer::from_text("Here.")]);
        let (_, rest) = until(setting.post(path, body).await, "It is").await;
        drop(rest);
        timeout(LIMIT, dropped).await.unwrap().unwrap();
        // The next turn of the conversation waits for no other.
        let next = json!({"message": "And now?", "conversation": "c1"});
        assert!(text(setting.post("/api/chat", &next).await).await.contains("Here."), "{path}");
        assert!(setting.texts().await[1].starts_with("It is"), "{path}");
    }
}

/// Another client that reads the turn does not keep it.
#[tokio::test]
async fn disconnect_stops_a_turn_that_another_client_reads() {
    for (path, body) in &bodies()[2..] {
        let (waiting, dropped) = endless();
        let setting = setting([Answer::new().text("It is").wait(waiting)]);
        let (_, rest) = until(setting.post(path, body).await, "It is").await;
        let (_, other) = until(setting.get("/api/conversations/c1/stream").await, "It is").await;
        drop(rest);
        timeout(LIMIT, dropped).await.expect(path).unwrap();
        assert!(rest_of(other).await.contains("cancelled"), "{path}");
    }
}

/// A client that can join again leaves its turn running.
#[tokio::test]
async fn disconnect_leaves_a_turn_that_can_be_joined() {
    for (path, body) in &bodies()[..2] {
        let gate = Gate::new();
        let setting = setting([Answer::new().text("It is ").gate(&gate).text("sunny.").done()]);
        let (_, rest) = until(setting.post(path, body).await, "It is ").await;
        drop(rest);
        let joined = setting.get("/api/conversations/c1/stream").await;
        assert_eq!(joined.status(), StatusCode::OK, "{path}");
        gate.release();
        assert!(text(joined).await.contains("sunny."), "{path}");
        assert_eq!(setting.texts().await[1], "It is sunny.", "{path}");
    }
}

/// A client may choose that its turn stops, such as for the `stop()` of `useChat`, which only disconnects.
#[tokio::test]
async fn disconnect_stops_a_turn_on_request() {
    for (path, body) in &bodies()[..2] {
        for wanted in ["stop", "continue"] {
            let (sender, dropped) = oneshot::channel();
            let guard = Guard(Some(sender));
            let gate = Gate::new();
            let first = Answer::new().text("It is").gate(&gate).wait(async move { drop(guard) });
            let setting = setting([first, Answer::from_text("Here.")]);
            let request = post(path).header("x-on-disconnect", wanted).body(body.to_string().into());
            let (_, rest) = until(setting.send(request.unwrap()).await, "It is").await;
            drop(rest);
            if wanted == "stop" {
                // The gate is closed, so only the end of the turn drops the guard.
                timeout(LIMIT, dropped).await.unwrap().unwrap();
                let next = json!({"message": "And now?", "conversation": "c1"});
                assert!(text(setting.post("/api/chat", &next).await).await.contains("Here."), "{path}");
                continue;
            }
            let joined = setting.get("/api/conversations/c1/stream").await;
            assert_eq!(joined.status(), StatusCode::OK, "{path}");
            gate.release();
            text(joined).await;
            dropped.await.unwrap();
        }
        let odd = post(path).header("x-on-disconnect", "wait").body(body.to_string().into());
        let odd = setting([]).send(odd.unwrap()).await;
        assert_eq!(refused(odd, StatusCode::BAD_REQUEST).await, "invalid_request", "{path}");
    }
}

/// Before the first event, too.
#[tokio::test]
async fn early_disconnect_leaves_a_turn_that_can_be_joined() {
    for (path, body) in &bodies()[..2] {
        let gate = Gate::new();
        let setting = setting([Answer::new().gate(&gate).text("It is sunny.").done()]);
        let asked = Box::pin(setting.post(path, body));
        let reached = timeout(LIMIT, gate.reached());
        let Either::Right((reached, asked)) = select(asked, Box::pin(reached)).await else {
            panic!("{path} answers before the model does");
        };
        reached.unwrap();
        drop(asked);
        let joined = tokio::join!(setting.get("/api/conversations/c1/stream"), async { gate.release() }).0;
        assert_eq!(joined.status(), StatusCode::OK, "{path}");
        assert!(text(joined).await.contains("sunny."), "{path}");
    }
}

#[tokio::test]
async fn second_client_reads_the_same_events() {
    let gate = Gate::new();
    let setting = setting([Answer::new().text("It is ").gate(&gate).text("sunny.").done()]);
    let (path, body) = &bodies()[0];
    let (shown, first) = until(setting.post(path, body).await, "It is ").await;
    let second = setting.get("/api/conversations/c1/stream").await;
    gate.release();
    assert_eq!(text(second).await, shown + &rest_of(first).await);
    assert_eq!(setting.model.calls(), 1);
}

/// `useChat` joins from the beginning, under the same id of the message.
#[tokio::test]
async fn ui_client_joins_from_the_beginning() {
    let gate = Gate::new();
    let setting = setting([Answer::new().text("It is ").gate(&gate).text("sunny.").done()]);
    let (path, body) = &bodies()[1];
    let (shown, rest) = until(setting.post(path, body).await, "It is ").await;
    drop(rest);
    let joined = setting.get("/api/ui/c1/stream").await;
    gate.release();
    let joined = text(joined).await;
    assert!(joined.starts_with(&shown), "{joined} does not begin with {shown}");
    assert!(joined.contains("sunny."), "{joined}");
    assert_eq!(setting.get("/api/ui/c1/stream").await.status(), StatusCode::NO_CONTENT);
}

/// Returns an answer that writes the arguments of a call for half a minute, a piece each 250 milliseconds.
fn slow_call() -> Answer {
    let head = Delta::tool_call(ToolCallDelta::start(0, "c1", "weather"));
    let piece = || Delta::tool_call(ToolCallDelta::arguments(0, " "));
    let pause = || async { sleep(Duration::from_millis(250)).await };
    let begun = Answer::new().text("It is").delta(head);
    (0..120).fold(begun, |answer, _| answer.wait(pause()).delta(piece()))
}

/// Returns what keeps a connection of this route open. Some routes show the arguments of a call as they arrive.
fn keep_alive(path: &str) -> Option<&'static str> {
    match path {
        "/api/ui" | "/api/ag-ui" | "/api/chunks" => None,
        "/v1/messages" => Some("event: ping\ndata: {\"type\":\"ping\"}\n\n"),
        _ => Some(": keep-alive\n\n"),
    }
}

/// A model that writes a long call is not silent, but a client that is not shown the call would be.
#[tokio::test(start_paused = true)]
async fn chunks_without_events_do_not_delay_keep_alives() {
    for (path, body) in bodies() {
        let Some(alive) = keep_alive(path) else { continue };
        let response = setting([slow_call()]).post(path, &body).await;
        let read = timeout(Duration::from_secs(20), until(response, &alive.repeat(3))).await;
        assert!(read.is_ok(), "{path} is silent");
    }
}

/// The server has stopped the turn because of its client, so this client gets an answer when it tries again.
#[tokio::test]
async fn turn_runs_again_after_a_disconnect_has_stopped_it() {
    for (path, body) in &bodies() {
        let answers = [Answer::new().text("It is").hang(), Answer::from_text("It is sunny.")];
        let setting = setting(answers);
        // The turn stops if its client disconnects.
        let named = || {
            let request =
                post_in(path, body).header("idempotency-key", "t1").header("x-on-disconnect", "stop");
            request.body(Body::from(body.to_string())).unwrap()
        };
        let (_, rest) = until(setting.send(named()).await, "It is").await;
        drop(rest);
        let again = text(setting.send(named()).await).await;
        assert!(again.contains("It is sunny.") && !again.contains("cancelled"), "{path}: {again}");
        // Now there is an answer, which is repeated.
        let third = text(setting.send(named()).await).await;
        assert!(third.contains("It is sunny."), "{path}: {third}");
        assert_eq!(setting.model.calls(), 2, "{path}");
        assert_eq!(setting.texts().await, ["Hi", "It is sunny."], "{path}");
    }
}
