//! Ollama's API passes the conformance suite for providers.

use std::sync::Arc;

use advisor_conformance::provider::{AnswerPart, WireFamily};
use advisor_core::{ChatModel, FinishReason, Usage};
use advisor_testkit::Reply;
use bytes::Bytes;
use provider_ollama::OllamaModel;
use provider_ollama::backoff::Backoff;
use serde_json::{Value, json};

advisor_conformance::provider_conformance!(Ollama);

/// A server of `/api/chat`. It sends calls whole, and has no refusals.
struct Ollama;

impl WireFamily for Ollama {
    fn model(&self, url: &str) -> Arc<dyn ChatModel> {
        let model = OllamaModel::new("qwen3").with_base_url(url).with_api_key("canary-key-0123456789");
        Arc::new(model.with_retries(Backoff::none()))
    }

    fn write(&self, parts: &[AnswerPart]) -> Option<Vec<Bytes>> {
        let mut last = Last::default();
        parts.iter().map(|part| Some(Bytes::from(line(part, &mut last)?))).collect()
    }

    fn reply(&self, body: Bytes) -> Reply {
        Reply::sse(body).with_header("content-type", "application/x-ndjson")
    }

    fn failure(&self, message: &str) -> Value {
        json!({ "error": message })
    }

    fn expressible(&self, usage: Usage) -> Usage {
        let mut known = Usage::default();
        (known.input_tokens, known.output_tokens) = (usage.input_tokens, usage.output_tokens);
        known
    }
}

/// What the last line needs, and the number of calls.
#[derive(Default)]
struct Last {
    usage: Usage,
    finished: bool,
    calls: u32,
}

fn line(part: &AnswerPart, last: &mut Last) -> Option<String> {
    let message = |mut message: Value| {
        message["role"] = "assistant".into();
        format!("{}\n", json!({ "model": "qwen3", "message": message, "done": false }))
    };
    Some(match part {
        AnswerPart::Text(text) => message(json!({ "content": text })),
        AnswerPart::Reasoning(text) => message(json!({ "content": "", "thinking": text })),
        AnswerPart::Call { name, arguments, .. } => {
            let arguments: Value = serde_json::from_str(&arguments.concat()).ok()?;
            let function = json!({ "index": last.calls, "name": name, "arguments": arguments });
            last.calls += 1;
            message(json!({ "content": "", "tool_calls": [{ "function": function }] }))
        }
        AnswerPart::Usage(_) if last.finished => return None,
        AnswerPart::Usage(usage) => {
            last.usage = *usage;
            String::new()
        }
        AnswerPart::Finish(reason) => {
            last.finished = true;
            last_line(reason, &last.usage)?
        }
        AnswerPart::End => String::new(),
        AnswerPart::Failure(message) => format!("{}\n", json!({ "error": message })),
        AnswerPart::Unknown => format!("{}\n", json!({ "status": "later" })),
        AnswerPart::Malformed => "{\"message\":}\n".to_owned(),
        _ => return None,
    })
}

fn last_line(reason: &FinishReason, usage: &Usage) -> Option<String> {
    let reason = match reason {
        // Ollama says `stop` after calls, too.
        FinishReason::Stop | FinishReason::ToolCalls => "stop",
        FinishReason::Length => "length",
        _ => return None,
    };
    let mut line = json!({
        "model": "qwen3",
        "message": { "role": "assistant", "content": "" },
        "done": true,
        "done_reason": reason,
        "total_duration": 5_000_000,
    });
    if let (Some(input), Some(output)) = (usage.input_tokens, usage.output_tokens) {
        line["prompt_eval_count"] = input.into();
        line["eval_count"] = output.into();
    }
    Some(format!("{line}\n"))
}
