//! Plain text, lines of JSON and segments.

use advisor_core::{Chunk, StreamItem};
use advisor_sse::{Encoder, Encoding, Frame, Frames, JsonLines, PlainText, Segments};
use advisor_testkit::Answer;
use serde_json::{Value, json};

use crate::table::encode;
use crate::turns::{self, play};

#[tokio::test]
async fn plain_text_has_the_text_only() {
    let call = Answer::new().reasoning("Hm.").text("Let me look.").call("c1", "weather", "{}").done();
    let turn = play([call, Answer::from_text("It is sunny.")]).await;
    assert_eq!(encode(Box::new(PlainText::new()), Frames::new(), &turn), "Let me look.\n\nIt is sunny.");
    let failed = play([Answer::new().text("It is")]).await;
    assert_eq!(
        encode(Box::new(PlainText::new()), Frames::new(), &failed),
        "It is\n\n[the answer broke off]\n"
    );
}

#[tokio::test]
async fn lines_of_json_are_the_chunks() {
    for (name, turn) in turns::all().await {
        let lines = encode(Box::new(JsonLines::new()), Frames::new(), &turn);
        let read = lines.lines().filter_map(|line| StreamItem::from_json(line).unwrap().into_result());
        let read: Vec<Chunk> = read.filter_map(Result::ok).collect();
        let chunks: Vec<Chunk> = turn.into_iter().filter_map(Result::ok).collect();
        assert_eq!(read, chunks, "{name}");
        assert!(lines.starts_with("{\"type\":\"begin\",\"version\":1}\n"), "{name}");
    }
}

#[test]
fn keep_alive_of_lines_is_skipped() {
    let line = String::from_utf8(Encoding::new(JsonLines::new()).encoder().keep_alive().to_vec()).unwrap();
    assert!(matches!(StreamItem::from_json(&line), Ok(StreamItem::Unknown)));
}

#[tokio::test]
async fn segments_have_their_type_and_the_id_of_the_call() {
    let turn =
        play([Answer::new().reasoning("Hm.").call("c1", "ask_user", r#"{"city":"Oslo"}"#).done()]).await;
    let stream = encode(Box::new(Segments::new("t1")), Frames::new(), &turn);
    let events: Vec<_> = Frame::read_all(&stream).iter().filter_map(Frame::json).collect();
    let starts: Vec<_> = events.iter().filter(|event| event["type"] == "SEGMENT_START").collect();
    assert_eq!(
        (&starts[0]["segment_type"], &starts[0]["segment_id"]),
        (&json!("reasoning"), &json!("t1:1.0"))
    );
    assert_eq!(
        (&starts[1]["segment_type"], &starts[1]["segment_id"]),
        (&json!("tool_call"), &json!("t1:c1"))
    );
    assert_eq!(starts[1]["metadata"], json!({"tool_name": "ask_user"}));
    let pieces: String = events
        .iter()
        .filter(|event| event["type"] == "SEGMENT_CONTENT" && event["segment_id"] == "t1:c1")
        .filter_map(|event| event["delta"].as_str())
        .collect();
    assert_eq!(serde_json::from_str::<Value>(&pieces).unwrap(), json!({"city": "Oslo"}));
    assert_eq!(events.last().unwrap()["metadata"], json!({"arguments": {"city": "Oslo"}}));
}

#[tokio::test]
async fn open_segments_of_a_failed_turn_say_so() {
    let turn = play([Answer::new().text("It is")]).await;
    let stream = encode(Box::new(Segments::new("t1")), Frames::new(), &turn);
    let end = Frame::read_all(&stream).iter().filter_map(Frame::json).next_back().unwrap();
    assert_eq!(end["metadata"], json!({"failed": true, "error": "the answer broke off"}));
}
