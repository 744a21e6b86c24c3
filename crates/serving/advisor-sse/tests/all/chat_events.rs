//! The scenarios of the chat page's protocol that the pinned turns do not have, frame by frame.

use advisor_core::{Chunk, Error, ErrorKind};
use advisor_sse::{ChatEvents, Frame, Frames};
use advisor_testkit::Answer;
use serde_json::{Value, json};

use crate::table::encode;
use crate::turns::{Turn, play};

fn events_of(encoder: ChatEvents, turn: &Turn) -> Vec<Value> {
    let frames = Frame::read_all(&encode(Box::new(encoder), Frames::new(), turn));
    let (done, events) = frames.split_last().unwrap();
    assert!(done.is_done());
    events.iter().map(|frame| frame.json().unwrap()).collect()
}

fn events(turn: &Turn) -> Vec<Value> {
    events_of(ChatEvents::default(), turn)
}

fn content(text: &str) -> Value {
    json!({"type": "content", "content": text})
}

fn start(tool: &str, id: &str, args: &Value) -> Value {
    json!({"type": "tool_call_start", "tool": tool, "id": id, "args": args})
}

#[tokio::test]
async fn turns_have_their_events() {
    let call = |tool: &str, arguments: &str| Answer::from_calls([("c1", tool, arguments)]);
    let failed = || Error::new(ErrorKind::Timeout, "no event within 5 s");
    let error = |text: &str| json!({"type": "error", "error": text});
    let refused = ["tool_call_start", "error", "tool_call_end", "content"];
    for (name, answers, kinds, first) in [
        ("a failed tool", vec![call("broken", "{}")], &refused[..], start("broken", "c1", &json!({}))),
        ("an unknown tool", vec![call("wether", "{}")], &refused, start("wether", "c1", &json!({}))),
        ("no JSON", vec![call("weather", "{\"ci")], &refused, start("weather", "c1", &json!("{\"ci"))),
        ("an error", vec![Answer::refused(failed())], &["error"], error("the request took too long")),
        ("no answer", vec![Answer::new().done()], &["content"], content("The model gave no answer.")),
    ] {
        let events = events(&play(answers.into_iter().chain([Answer::from_text("Sorry.")])).await);
        assert_eq!(events.iter().map(|event| &event["type"]).collect::<Vec<_>>(), kinds, "{name}");
        assert_eq!(events[0], first, "{name}");
    }
}

#[tokio::test]
async fn several_rounds_end_at_their_limit() {
    let turn = play((1..9).map(|_| Answer::from_calls([("c1", "weather", "{}")]))).await;
    let events = events(&turn);
    let starts = events.iter().filter(|event| event["type"] == "tool_call_start");
    let ids: Vec<_> = starts.map(|event| &event["id"]).collect();
    assert_eq!(ids, ["c1", "c1_2", "c1_3"], "ids are unique, also if the model repeats them");
}

#[tokio::test]
async fn a_stream_without_completion_has_an_error() {
    let turn: Turn = play([Answer::from_text("It is")]).await;
    let cut: Turn = turn.into_iter().filter(|item| !matches!(item, Ok(Chunk::Completed(_)))).collect();
    assert_eq!(events(&cut)[1], json!({"type": "error", "error": "the answer broke off"}));
}

#[tokio::test]
async fn a_second_attempt_has_blocks_of_its_own() {
    let turns = crate::turns::all().await;
    let (_, turn) = turns.iter().find(|(name, _)| *name == "a second attempt").unwrap();
    let events = events_of(ChatEvents::default().with_blocks(), turn);
    let blocks: Vec<_> =
        events.iter().map(|event| (&event["type"], &event["block"], &event["round"])).collect();
    let expected = [
        (&json!("content"), &json!("1.0"), &Value::Null),
        (&json!("tool_call_open"), &json!("1.1"), &Value::Null),
        (&json!("tool_call_arguments"), &Value::Null, &Value::Null),
        (&json!("restart"), &Value::Null, &json!(1)),
        (&json!("content"), &json!("1.0-2"), &Value::Null),
    ];
    assert_eq!(blocks, expected);
}
