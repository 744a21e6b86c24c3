//! The end of an answer: whole, cut, filtered, refused or interrupted.

use advisor_core::{FinishReason, Limit};
use advisor_sse::{Frame, Frames};
use advisor_testkit::Answer;
use serde_json::{Value, json};

use crate::protocols::has_events;
use crate::table::{encode, protocols};
use crate::turns::{self, Turn, play};

/// The reasons for an end that a client must be able to tell from a whole answer.
const CUT: [FinishReason; 5] = [
    FinishReason::Length,
    FinishReason::ContentFilter,
    FinishReason::Refusal,
    FinishReason::Interrupted,
    FinishReason::Limit(Limit::Rounds(3)),
];

/// The values of an ending: for a whole answer, for calls of the client, and for each reason of [`CUT`]. Without a value, it
/// is empty.
type Values = [&'static str; 7];

/// The place of the ending in the frames of a protocol, and its values there.
type Row = (&'static str, &'static str, Values);

const LENGTH: &str = "the answer is cut: it reached its greatest length";
const FILTERED: &str = "the answer was refused or filtered";
const INTERRUPTED: &str = "the answer was interrupted";
const LIMIT: &str = "the answer ended at a limit";
const NOTICES: Values = ["", "", LENGTH, FILTERED, FILTERED, INTERRUPTED, LIMIT];
const REASONS: Values = ["", "", "length", "content_filter", "content_filter", "interrupted", "limit"];
const UI: Values = ["stop", "tool-calls", "length", "content-filter", "content-filter", "error", "other"];
const COMPLETION: Values =
    ["stop", "tool_calls", "length", "content_filter", "content_filter", "length", "length"];
const MESSAGE: Values =
    ["end_turn", "tool_use", "max_tokens", "refusal", "refusal", "max_tokens", "max_tokens"];
const STATUS: Values =
    ["completed", "completed", "incomplete", "incomplete", "incomplete", "incomplete", "incomplete"];
const DETAILS: Values = [
    "", "", "max_output_tokens", "content_filter", "content_filter", "max_output_tokens", "max_output_tokens",
];
// The reason of a limit is an object.
const OWN: Values = ["stop", "tool_calls", "length", "content_filter", "refusal", "interrupted", ""];

const ROWS: &[Row] = &[
    ("chat events", "/error", NOTICES),
    ("chat events with blocks", "/error", NOTICES),
    ("UI messages", "/data/reason", REASONS),
    ("UI messages", "/data/message", NOTICES),
    ("UI messages", "/finishReason", UI),
    ("AG-UI", "/result/incomplete/reason", REASONS),
    ("AG-UI", "/result/incomplete/message", NOTICES),
    ("Chat Completions", "/choices/0/finish_reason", COMPLETION),
    ("Chat Completions with usage", "/choices/0/finish_reason", COMPLETION),
    ("Responses", "/response/status", STATUS),
    ("Responses", "/response/incomplete_details/reason", DETAILS),
    ("Messages", "/delta/stop_reason", MESSAGE),
    ("JSON lines", "/finish/reason", OWN),
];

/// Returns the turns whose endings the rows list.
async fn endings() -> Vec<Turn> {
    let call = Answer::from_calls([("c1", "ask_user", "{}")]);
    let mut turns = vec![play([Answer::from_text("It is")]).await, play([call]).await];
    for reason in CUT {
        turns.push(play([turns::ending(reason)]).await);
    }
    turns
}

/// Returns the last value at a place.
fn last(protocol: &str, stream: &str, place: &str) -> String {
    let values: Vec<Value> = match has_events(protocol) {
        true => Frame::read_all(stream).iter().filter_map(Frame::json).collect(),
        false => stream.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
    };
    let last = values.iter().rev().find_map(|value| value.pointer(place)?.as_str());
    last.unwrap_or_default().to_owned()
}

#[tokio::test]
async fn endings_have_the_words_of_each_protocol() {
    let turns = endings().await;
    let protocols = protocols();
    for (protocol, place, expected) in ROWS {
        let (_, encoder, _) = protocols.iter().find(|(name, ..)| name == protocol).unwrap();
        for (turn, expected) in turns.iter().zip(expected) {
            let stream = encode(encoder(), Frames::new(), turn);
            assert_eq!(last(protocol, &stream, place), *expected, "{protocol}, {place}:\n{stream}");
        }
    }
    for (protocol, ..) in &protocols {
        assert!(ROWS.iter().any(|(name, ..)| name == protocol), "{protocol} has no row");
    }
}

/// A message without any part has one that says why.
#[tokio::test]
async fn empty_answer_that_is_cut_is_told() {
    let turn = play([Answer::new().finish(FinishReason::Length).done()]).await;
    let (_, encoder, check) = protocols().into_iter().find(|(name, ..)| *name == "UI messages").unwrap();
    let stream = encode(encoder(), Frames::new(), &turn);
    assert_eq!(check(&stream, &turn), Ok(()));
    let events: Vec<_> = Frame::read_all(&stream).iter().filter_map(Frame::json).collect();
    let part = json!({"type": "data-incomplete", "data": {"reason": "length", "message": LENGTH}});
    assert_eq!(events[1], part);
}
