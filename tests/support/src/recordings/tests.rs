//! Tests of loading recordings, and of comparing results with their expectations.

use super::Recordings;
use crate::recordings;
use serde_json::json;
use std::path::{Path, PathBuf};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/shared/recordings")
}

#[test]
fn recording_has_body_and_expectation() {
    let recordings = recordings::load(&directory(), "openai-chat").unwrap();
    assert_eq!(recordings.directory(), Some(directory().as_path()));
    assert_eq!(recordings.len(), 2);
    let greeting = recordings.named("example-greeting").unwrap();
    assert_eq!((greeting.api.as_str(), greeting.provider.as_str()), ("openai-chat", "example"));
    assert_eq!(greeting.body, std::fs::read(directory().join("example-greeting.sse")).unwrap());
    assert_eq!(greeting.chunk_ends, [30, 170]);
    assert_eq!(greeting.expected["text"], "Hello");
    assert!(greeting.observed_calls_by_id().is_none());
    let tool = recordings.named("example-tool").unwrap();
    assert_eq!(tool.chunk_ends.len(), 0);
    assert!(recordings.named("example").is_none());
    let names: Vec<&str> = recordings.iter().map(|recording| recording.name.as_str()).collect();
    assert_eq!(names, ["example-greeting", "example-tool"]);
}

#[test]
fn payload_lines_are_framed_as_their_provider_would() {
    let body = |api: &str, name: &str| {
        let recordings: Recordings = recordings::load(&directory(), api).unwrap();
        String::from_utf8(recordings.named(name).unwrap().body.clone()).unwrap()
    };
    let tool = body("openai-chat", "example-tool");
    assert_eq!(tool.matches("data: {\"choices\":").count(), 2);
    assert!(tool.ends_with("\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"), "{tool}");
    assert_eq!(
        body("anthropic-messages", "example-message"),
        "event: message_start\ndata: {\"type\":\"message_start\"}\r\n\n\
         event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
    );
    assert_eq!(body("other", "example-native"), "{\"done\":false}\n{\"done\":true}\n");
}

#[test]
fn observed_calls_are_compared_by_id() {
    let recordings = recordings::load(&directory(), "openai-chat").unwrap();
    let tool = recordings.named("example-tool").unwrap();
    let got = |id: &str, arguments: &str| {
        json!({
            "text": "", "finish_reason": "tool_calls",
            "tool_calls": [{"id": id, "name": "now", "arguments": arguments}]
        })
    };
    assert!(tool.differences(&got("c1", "{}")).is_empty());
    assert_eq!(tool.differences(&got("c2", "")), ["observed call 0: id", "observed call 0: arguments"]);
    assert_eq!(
        tool.differences(&json!({"text": "", "finish_reason": "tool_calls"})),
        ["observed calls (0, not 1)"]
    );
}
