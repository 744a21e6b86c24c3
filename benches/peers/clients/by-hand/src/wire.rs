//! Chat Completions, as far as these clients need it.

use peer_measure::weather;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The name of the requested model.
pub const MODEL: &str = "gpt-4o-mini";
/// The user's message.
pub const QUESTION: &str = "What now?";

/// One event of an answer; its fields are owned, as a client has them that gives them away.
#[derive(Deserialize)]
#[allow(dead_code, reason = "a client would read them")]
pub struct Event {
    id: String,
    object: String,
    created: u64,
    model: String,
    system_fingerprint: Option<String>,
    /// The parallel answers of the model.
    pub choices: Vec<Choice>,
    usage: Option<Usage>,
}

/// One of several answers.
#[derive(Deserialize)]
#[allow(dead_code, reason = "a client would read them")]
pub struct Choice {
    index: u32,
    /// The new part of the answer.
    pub delta: Delta,
    finish_reason: Option<String>,
}

/// The new part of an answer.
#[derive(Deserialize)]
#[allow(dead_code, reason = "a client would read them")]
pub struct Delta {
    role: Option<String>,
    /// Text for the user.
    pub content: Option<String>,
    reasoning_content: Option<String>,
    /// Pieces of calls.
    pub tool_calls: Option<Vec<CallDelta>>,
}

/// A piece of a call.
#[derive(Deserialize)]
pub struct CallDelta {
    index: usize,
    id: Option<String>,
    function: FunctionDelta,
}

#[derive(Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "a client would read them")]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

/// A message of a request.
#[derive(Clone, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// A message of the user.
    User {
        /// The text.
        content: String,
    },
    /// Calls of the model.
    Assistant {
        /// The calls.
        tool_calls: Vec<Call>,
    },
    /// The result of a tool.
    Tool {
        /// The call.
        tool_call_id: String,
        /// The answer.
        content: String,
    },
}

/// A whole call.
#[derive(Clone, Default, Serialize)]
pub struct Call {
    id: String,
    r#type: &'static str,
    function: Function,
}

#[derive(Clone, Default, Serialize)]
struct Function {
    name: String,
    arguments: String,
}

/// Puts a piece of a call where it belongs.
pub fn assemble(calls: &mut Vec<Call>, piece: CallDelta) {
    if calls.len() <= piece.index {
        calls.resize(piece.index + 1, Call { r#type: "function", ..Call::default() });
    }
    let call = &mut calls[piece.index];
    call.id.extend(piece.id);
    call.function.name.extend(piece.function.name);
    call.function.arguments.extend(piece.function.arguments);
}

/// Runs the calls: the messages that go to the model next.
pub fn run(calls: Vec<Call>) -> Vec<Message> {
    let result = |call: &Call| {
        let arguments: Value = serde_json::from_str(&call.function.arguments).expect("arguments are JSON");
        let content = weather::answer(arguments["city"].as_str().unwrap_or_default()).to_owned();
        Message::Tool { tool_call_id: call.id.clone(), content }
    };
    let results: Vec<Message> = calls.iter().map(result).collect();
    std::iter::once(Message::Assistant { tool_calls: calls }).chain(results).collect()
}

/// Returns the tools of a request.
pub fn tools() -> Value {
    let function =
        json!({"name": weather::NAME, "description": weather::DESCRIPTION, "parameters": weather::schema()});
    json!([{"type": "function", "function": function}])
}
