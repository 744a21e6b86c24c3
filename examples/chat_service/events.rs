//! Converts the chunks of a turn to server-sent events for its client:
//!
//! | event | data |
//! | --- | --- |
//! | `text` | `{"text": "…"}`: the next piece of text |
//! | `tool` | `{"tool": "…"}`: a tool starts |
//! | `restart` | `{"round": 1}`: the text of this round is void, and is sent again |
//! | `done` | `{"turn": "…", "finish": "stop"}`: the turn is stored; nothing follows |
//! | `error` | `{"error": "connection"}`: the text so far is stored; nothing follows |

use std::convert::Infallible;

use advisor_chain::messages::ToolEventKind;
use advisor_chain::{Chunk, Error, TurnStream};
use axum::response::sse::Event;
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::watch;

/// Dropping the events drops the turn. The server drops them when the client disconnects.
pub(super) fn of_turn(
    turn: TurnStream,
    stop: watch::Receiver<bool>,
) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    let id = turn.turn().id().clone();
    let running = stream::unfold(Some((turn, stop)), |running| async {
        let (mut turn, mut stop) = running?;
        let next = tokio::select! {
            // A ready chunk is sent before the end.
            biased;
            chunk = turn.next() => chunk.map(Some),
            _ = stop.wait_for(|stop| *stop) => Some(None),
        };
        Some(match next? {
            Some(chunk) => (Some(chunk), Some((turn, stop))),
            None => (None, None),
        })
    });
    running.filter_map(move |chunk| {
        let event = match &chunk {
            Some(Ok(Chunk::Completed(response))) => {
                Some(("done", json!({"turn": id.as_str(), "finish": response.finish.reason})))
            }
            Some(Ok(chunk)) => of_chunk(chunk),
            Some(Err(error)) => Some(of_error(error)),
            None => Some(("error", json!({"error": "stopping"}))),
        };
        std::future::ready(event.map(|(name, data)| Ok(Event::default().event(name).data(data.to_string()))))
    })
}

fn of_chunk(chunk: &Chunk) -> Option<(&'static str, Value)> {
    match chunk {
        Chunk::AttemptRestarted { round } => Some(("restart", json!({"round": round}))),
        Chunk::Tool(tool) if matches!(tool.kind, ToolEventKind::Started { .. }) => {
            Some(("tool", json!({"tool": tool.name.as_str()})))
        }
        chunk => chunk.text().map(|text| ("text", json!({"text": text}))),
    }
}

/// Only the kind of the error: its text is for the operator of the service.
fn of_error(error: &Error) -> (&'static str, Value) {
    ("error", json!({"error": error.kind().as_str()}))
}
