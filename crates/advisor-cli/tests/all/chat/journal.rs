//! The journal of a chat, and `advisor inspect`.

use std::path::PathBuf;

use advisor_testkit::{Event, Journal, ReplayServer, Reply};

use super::answer;
use crate::common::{advisor, chat, server, text_of, told};

/// The path of a file that is not there.
fn no_file(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}

/// Chats with this server and input, and returns the events of the journal.
async fn recorded(server: &ReplayServer, file: &PathBuf, more: &[&str], said: &str) -> Vec<Event> {
    let mut command = chat(server, more);
    command.arg("--journal").arg(file);
    told(command, said).await;
    serde_json::from_slice::<Journal>(&std::fs::read(file).unwrap()).unwrap().events()
}

#[tokio::test]
async fn d12_journal_shows_each_part_of_a_turn() {
    let server = server([
        answer().tool_call(0, "call", "current_time", &["{}"]).finish("tool_calls"),
        answer().text("It is late.").finish("stop"),
    ])
    .await;
    let file = no_file("turn.journal");
    let events = recorded(&server, &file, &[], "What time is it?\n").await;
    assert!(events.iter().all(|event| event.at_ms.is_some()), "{events:?}");
    let labels: Vec<_> = events.iter().map(|event| event.label.as_str()).collect();
    let place = |label: &str| {
        labels.iter().position(|other| *other == label).unwrap_or_else(|| panic!("{label}: {labels:?}"))
    };
    let in_order = [
        "advisor.enter tool-call",
        "advisor.enter chat-memory",
        "stored user",
        "model.ask r1",
        "model.end r1",
        "stored assistant(call)",
        "advisor.completed chat-memory r1",
        "tool.start call",
        "tool.end call",
        "stored result(call)",
        "model.ask r2",
        "stored assistant() end",
        "turn.completed",
    ];
    assert!(in_order.map(place).is_sorted(), "{labels:?}");
    for (format, parts) in [
        (
            "text",
            [
                "turns: 1, model calls: 2, tool runs: 1",
                "chat-memory    completes (r1)",
                "call starts: current_time {}",
            ],
        ),
        ("mermaid", ["sequenceDiagram\n", "as chat-memory\n", "stored result(call)"]),
        ("html", ["<!doctype html>", "<b>chat-memory</b> enters", "</html>\n"]),
    ] {
        let output = advisor(&["inspect", file.to_str().unwrap(), "--format", format]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let shown = text_of(&output.stdout);
        assert!(parts.iter().all(|part| shown.contains(part)), "{shown}");
    }
}

#[tokio::test]
async fn d12_journal_of_a_failed_turn_has_no_texts() {
    let cut = answer().text("a secret answer").without_done();
    let server = ReplayServer::start([Reply::sse(cut)]).await.unwrap();
    let file = no_file("failed.journal");
    let events = recorded(&server, &file, &["--json"], "a secret question\n").await;
    let labels: Vec<_> = events.iter().map(|event| event.label.as_str()).collect();
    assert!(labels.contains(&"model.drop r1") && labels.ends_with(&["turn.failed truncated"]), "{labels:?}");
    assert!(!std::fs::read_to_string(&file).unwrap().contains("secret"));
}

#[test]
fn d12_journal_replaces_no_file_and_other_files_are_refused() {
    let file = crate::common::file("no.journal", "a text");
    let command = ["chat", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--journal"];
    let chat = advisor(&command).arg(&file).output().unwrap();
    let inspect = advisor(&["inspect"]).arg(&file).output().unwrap();
    for output in [chat, inspect] {
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text_of(&output.stderr).contains("no.journal"), "{output:?}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "a text");
}
