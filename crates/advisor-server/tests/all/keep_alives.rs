//! Bytes that keep a connection open while the client is shown nothing.

use std::time::Duration;

use advisor_core::{Delta, ToolCallDelta};
use advisor_testkit::Answer;
use tokio::time::{sleep, timeout};

use crate::disconnects::bodies;
use crate::setting::{setting, until};

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
