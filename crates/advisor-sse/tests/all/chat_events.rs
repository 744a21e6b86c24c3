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
async fn parallel_tools_start_before_any_ends() {
    // The first one waits until the second one runs.
    let calls = Answer::from_calls([("c1", "slow", "{}"), ("c2", "fast", "{}")]);
    let events = events(&play([calls, Answer::from_text("Both.")]).await);
    let place = |kind: &str, id: &str| {
        events.iter().position(|event| event["type"] == kind && event["id"] == id).unwrap()
    };
    let starts = ["c1", "c2"].map(|id| place("tool_call_start", id));
    let ends = ["c1", "c2"].map(|id| place("tool_call_end", id));
    assert!(starts.iter().max() < ends.iter().min(), "{events:?}");
}

#[tokio::test]
async fn a_failed_tool_has_an_error_and_an_end() {
    let turn = play([Answer::from_calls([("c1", "broken", "{}")]), Answer::from_text("It failed.")]).await;
    let events = events(&turn);
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["tool_call_start", "error", "tool_call_end", "content"]);
    assert_eq!((&events[1]["id"], &events[1]["error"]), (&json!("c1"), &events[2]["result"]));
}

#[tokio::test]
async fn a_call_that_never_starts_has_all_three_events() {
    for (tool, arguments, args) in [("wether", "{}", json!({})), ("weather", "{\"ci", json!("{\"ci"))] {
        let turn = play([Answer::from_calls([("c1", tool, arguments)]), Answer::from_text("Sorry.")]).await;
        let events = events(&turn);
        let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["tool_call_start", "error", "tool_call_end", "content"]);
        assert_eq!((&events[0], &events[2]["tool"]), (&start(tool, "c1", &args), &json!(tool)));
    }
}

#[tokio::test]
async fn several_rounds_end_at_their_limit() {
    let turn = play((1..9).map(|_| Answer::from_calls([("c1", "weather", "{}")]))).await;
    let ids: Vec<_> = events(&turn)
        .iter()
        .filter(|event| event["type"] == "tool_call_start")
        .map(|event| event["id"].clone())
        .collect();
    assert_eq!(ids, ["c1", "c1_2", "c1_3"], "ids are unique, also if the model repeats them");
}

#[tokio::test]
async fn an_error_within_the_stream_is_told() {
    let error = Error::new(ErrorKind::Timeout, "no event within 5 s");
    let turn = play([Answer::new().text("It is").error(error)]).await;
    assert_eq!(
        events(&turn),
        [content("It is"), json!({"type": "error", "error": "the request took too long"})]
    );
}

#[tokio::test]
async fn a_stream_without_completion_has_an_error() {
    let turn: Turn = play([Answer::from_text("It is")]).await;
    let cut: Turn = turn.into_iter().filter(|item| !matches!(item, Ok(Chunk::Completed(_)))).collect();
    assert_eq!(events(&cut)[1], json!({"type": "error", "error": "the answer broke off"}));
}

#[tokio::test]
async fn an_empty_answer_is_said() {
    let turn = play([Answer::new().done()]).await;
    assert_eq!(events(&turn), [content("The model gave no answer.")]);
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
