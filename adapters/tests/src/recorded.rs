//! Answers of real servers.

use std::time::Duration;

use advisor_core::{ChatRequest, Message};
use advisor_test_support::recordings;
use advisor_testkit::{ReplayServer, answer_of};
use serde_json::Value;

use crate::Ask;

/// The longest time of one replay.
const LIMIT: Duration = Duration::from_secs(20);

/// The answers that a client is known to read in another way.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// The recordings, each with the field that differs.
    pub differences: &'static [(&'static str, &'static str)],
    /// Whether the client reads reasoning.
    pub reasoning: bool,
}

/// Replays every recorded answer of Chat Completions, and compares the outcome with the recorded one.
///
/// # Panics
/// If an answer differs that is not known to, if a known difference is gone, or if an answer does not end.
pub async fn assert_recordings(ask: Ask, known: Known) {
    let mut wrong = Vec::new();
    for mut recording in recordings::all("openai-chat") {
        if !known.reasoning {
            recording.expected["reasoning"] = Value::Null;
        }
        let server = ReplayServer::start([recording.reply()]).await.expect("a port");
        let request = ChatRequest::new(Message::user("Hello"));
        let model = ask(&server.url());
        let Ok(answer) = tokio::time::timeout(LIMIT, answer_of(&model, request)).await else {
            panic!("{}: no end", recording.name)
        };
        let outcome = recordings::outcome(&answer);
        let found = recording.differences(&outcome);
        let expected = known.differences.iter().find(|(name, _)| *name == recording.name);
        let agrees = match expected {
            Some((_, field)) => found.iter().any(|difference| difference.contains(field)),
            None => found.is_empty(),
        };
        if !agrees {
            wrong.push(format!("{}: {found:?}, known: {expected:?}", recording.name));
        }
    }
    assert!(wrong.is_empty(), "{} answers: {}", wrong.len(), wrong.join("\n\n"));
}
