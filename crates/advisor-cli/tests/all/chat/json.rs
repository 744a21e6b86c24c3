//! The same as JSON Lines, for programs.

use advisor_chain::chain::StreamItem;
use advisor_testkit::{ReplayServer, Reply};
use serde_json::Value;

use super::{answer, refusal};
use crate::common::{chat, server, text_of, told};

/// Reads the items of the output. Each has the documented form.
fn items(output: &[u8]) -> Vec<Value> {
    let text = text_of(output);
    let lines = text.lines().inspect(|line| assert!(StreamItem::from_json(line).is_ok(), "{line}"));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn types(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn json_output_has_items_of_each_turn_and_nothing_else() {
    let server = server([
        answer().reasoning("Hm.").tool_call(0, "call", "current_time", &["{}"]).finish("tool_calls"),
        answer().text("It is late.").finish("stop"),
        answer().text("Later.").finish("stop"),
    ])
    .await;
    let output = told(chat(&server, &["--json"]), "What time is it?\r\n\nAnd now?\n").await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text_of(&output.stderr), "");
    let items = items(&output.stdout);
    let turns: Vec<_> = items.split_inclusive(|item| item["type"] == "completed").collect();
    assert_eq!(turns.len(), 2, "{items:?}");
    for turn in &turns {
        assert_eq!(turn[0], serde_json::json!({"type": "begin", "version": 1}));
        assert_eq!(types(turn).iter().filter(|kind| **kind == "begin").count(), 1, "{turn:?}");
    }
    let tools: Vec<_> = turns[0].iter().filter(|item| item["type"] == "tool").collect();
    assert_eq!(tools.len(), 2, "{tools:?}");
    let last = turns[1].last().unwrap();
    assert_eq!(last["message"]["content"][0]["value"], "Later.");
    assert_eq!(last["transcript"][0]["content"][0]["value"], "And now?");
}

#[tokio::test]
async fn failed_turn_is_an_item_and_exits_with_1() {
    let cut = answer().text("some").without_done();
    let server = ReplayServer::start([Reply::sse(cut)]).await.unwrap();
    let output = told(chat(&server, &["--json"]), "one\ntwo\n").await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let shown = items(&output.stdout);
    let last = shown.last().unwrap();
    assert_eq!((&last["type"], &last["kind"]), (&"error".into(), &"truncated".into()), "{shown:?}");
    let server = ReplayServer::start([refusal()]).await.unwrap();
    let output = told(chat(&server, &["--json"]), "one\n").await;
    let shown = items(&output.stdout);
    assert_eq!(types(&shown), ["begin", "error"]);
    let message = shown[1]["message"].as_str().unwrap();
    assert!(message.contains("HTTP 400, nope"), "an operator reads the details: {message}");
}

#[tokio::test]
async fn json_has_no_raw_control_characters() {
    let text = "a\u{1b}[2Jb\u{9b}c\u{202e}d";
    let server = server([answer().text(text).finish("stop")]).await;
    let output = told(chat(&server, &["--json"]), "go\n").await;
    let shown = text_of(&output.stdout);
    assert!(!shown.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{shown:?}");
    let items = items(&output.stdout);
    assert_eq!(items.last().unwrap()["message"]["content"][0]["value"], text);
}
