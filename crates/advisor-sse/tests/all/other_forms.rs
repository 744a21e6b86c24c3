//! Plain text, lines of JSON and segments.

use advisor_core::{
    ChatResponse, Chunk, Error, ErrorKind, FallbackModel, FinishReason, Message, MessageList, StreamItem,
};
use advisor_sse::{
    AgUi, Encoder, Encoding, Frame, Frames, JsonEvents, JsonLines, PlainText, Segments, validate,
};
use advisor_testkit::{Answer, ScriptedModel};
use serde_json::{Value, json};
use tool_call_advisor::ToolCallStreaming;

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
fn hidden_messages_are_no_lines() {
    let hidden = Message::assistant("[canary]").hidden();
    let response = ChatResponse::new(1, Message::assistant("It is sunny."), FinishReason::Stop);
    let transcript = MessageList::from(vec![hidden, response.message().clone()]);
    let response = response.with_transcript(transcript);
    let turn = vec![Ok(Chunk::RoundCompleted(response.clone())), Ok(Chunk::Completed(response))];
    for encoder in [Box::new(JsonLines::new()) as Box<dyn Encoder>, Box::new(JsonEvents::new())] {
        let stream = encode(encoder, Frames::new(), &turn);
        assert!(!stream.contains("canary"), "{stream}");
        // In the answers and in the transcripts.
        assert_eq!(stream.matches("It is sunny.").count(), 4, "{stream}");
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

/// Segments that have ended end once more, so that a client can take back what it has shown.
#[tokio::test]
async fn restarted_attempt_ends_all_its_segments_again() {
    let round = |text: &str| Answer::new().text(text).call("c1", "weather", r#"{"city":"Oslo"}"#);
    let error = || Error::new(ErrorKind::Provider { status: Some(500) }, "unavailable");
    let first = ScriptedModel::new([round("One.").done(), round("Two.").text("And").error(error())]);
    let again = ScriptedModel::new([Answer::from_text("It is sunny.")]);
    let model = FallbackModel::new(first).with_fallback(again).with_restart_after_output();
    let turn = turns::play_with(model, ToolCallStreaming::All).await;
    let frames = Frame::read_all(&encode(Box::new(Segments::new("t1")), Frames::new(), &turn));
    let void: Vec<_> = frames
        .iter()
        .filter_map(Frame::json)
        .filter(|event| event["metadata"]["interrupted"] == true)
        .map(|event| event["segment_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(void, ["t1:2.0", "t1:c1_2", "t1:2.2"], "those of round 1 stay");
    assert_eq!(validate::segments(&frames), Ok(()));
}

#[tokio::test]
async fn open_segments_of_a_failed_turn_say_so() {
    let turn = play([Answer::new().text("It is")]).await;
    let stream = encode(Box::new(Segments::new("t1")), Frames::new(), &turn);
    let end = Frame::read_all(&stream).iter().filter_map(Frame::json).next_back().unwrap();
    assert_eq!(end["metadata"], json!({"failed": true, "error": "the answer broke off"}));
}

#[tokio::test]
async fn state_of_the_application_follows_its_tools() {
    let calls = Answer::new().call("c1", "weather", "{}").call("c2", "broken", "{}").done();
    let turn = play([calls, Answer::from_text("It is sunny.")]).await;
    let mut tools = 0;
    let run = AgUi::new("t1", "r1").with_state(move |chunk| match chunk {
        Chunk::Tool(event) => event.result().map(|_| {
            tools += 1;
            json!({"tools": tools})
        }),
        Chunk::Completed(_) => Some(json!("done")),
        _ => None,
    });
    let frames = Frame::read_all(&encode(Box::new(run), Frames::new(), &turn));
    assert_eq!(validate::ag_ui(&frames), Ok(()));
    let events: Vec<_> = frames.iter().filter_map(Frame::json).collect();
    let states: Vec<_> = events.iter().filter(|event| event["type"] == "STATE_SNAPSHOT").collect();
    let states: Vec<_> = states.iter().map(|event| event["snapshot"].clone()).collect();
    assert_eq!(states, [json!({"tools": 1}), json!({"tools": 2}), json!("done")]);
    assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED");
}
