//! The end of an answer in one piece, and of one that is stopped. Streams have the words of `advisor-sse`.

use advisor_core::{AdvisorChain, ChatRequest, FinishReason, ToolDefinition, from_fn};
use advisor_testkit::Answer;
use serde_json::json;
use tool_call_advisor::ClientSideTool;

use crate::setting::{Setting, chain, json_of, rest_of, setting, text, until};

/// A server whose chain has a tool `ask_user`, which the client runs, and whose model ends for this reason.
fn ending(reason: &FinishReason) -> Setting {
    let answer = match reason {
        FinishReason::ToolCalls => Answer::from_calls([("c1", "ask_user", "{}")]),
        reason => Answer::new().text("It is").finish(reason.clone()).done(),
    };
    let definition = ToolDefinition::new("ask_user", "Asks the user.", json!({"type": "object"}));
    chain([answer], |client| client.tool(ClientSideTool::new(definition)))
}

/// A route, the place of the ending in a whole answer, and its value for a whole answer, for calls, and for a cut one.
type Row = (&'static str, &'static str, [&'static str; 3]);

const ROWS: [Row; 3] = [
    ("/v1/chat/completions", "/choices/0/finish_reason", ["stop", "tool_calls", "length"]),
    ("/v1/messages", "/stop_reason", ["end_turn", "tool_use", "max_tokens"]),
    ("/v1/responses", "/status", ["completed", "completed", "incomplete"]),
];

#[tokio::test]
async fn answers_in_one_piece_have_their_ending() {
    let messages = json!([{"role": "user", "content": "How is it?"}]);
    let question = json!({"model": "chain", "max_tokens": 9, "messages": messages, "input": "How is it?"});
    for (path, place, expected) in ROWS {
        let reasons = [FinishReason::Stop, FinishReason::ToolCalls, FinishReason::Length];
        for (reason, expected) in reasons.iter().zip(expected) {
            let whole = json_of(ending(reason).post(path, &question).await).await;
            assert_eq!(whole.pointer(place), Some(&json!(expected)), "{path}, {reason:?}: {whole}");
        }
    }
}

/// The page says that the user has stopped the answer. Other clients get an error.
#[tokio::test]
async fn stopped_turn_is_no_failure_on_the_page() {
    for (path, end) in [
        ("/api/chat?view=page", r#"{"type":"stopped"}"#),
        ("/api/chat", r#"{"type":"error","error":"the request was cancelled""#),
    ] {
        let setting = setting([Answer::new().text("It is").hang()]);
        let asking = json!({"message": "How is it?", "conversation": "c1"});
        let (_, body) = until(setting.post(path, &asking).await, "It is").await;
        setting.stop().await;
        let rest = rest_of(body).await;
        assert!(rest.contains(end), "{path}: {rest}");
    }
}

/// The panic ends the task that runs the turn. Its readers would wait for ever if it did not end the turn, too.
#[tokio::test]
async fn turn_whose_advisor_panics_ends_for_its_readers() {
    let panics = from_fn("panics", |request: ChatRequest, next: AdvisorChain| async move {
        let chunks = next.next_stream(request).await?;
        Ok(chunks.on_completed(|_| async { panic!("canary") }))
    });
    let setting = chain([Answer::from_text("It is")], |client| client.advisor(panics));
    let asking = json!({"message": "How is it?", "conversation": "c1"});
    let answer = text(setting.post("/api/chat", &asking).await).await;
    assert!(answer.contains("It is") && answer.contains(r#"{"type":"error""#), "{answer}");
    assert!(!answer.contains("canary"), "{answer}");
}
