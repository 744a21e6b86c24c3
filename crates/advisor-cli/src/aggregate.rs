//! `advisor aggregate`: prints the result of a recorded stream.

use std::io::{ErrorKind, Write};
use std::path::Path;

use advisor_chain::{anthropic, gemini, ollama, openai};
use clap::ValueEnum;
use serde_json::Value;

use crate::failure::Failure;
use crate::printable::escaped_json;

/// Wire formats of recordings.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Api {
    /// Chat Completions of OpenAI.
    OpenaiChat,
    /// The Responses API of OpenAI.
    OpenaiResponses,
    /// Messages of Anthropic.
    AnthropicMessages,
    /// `streamGenerateContent` of Google.
    Gemini,
    /// Ollama's own API.
    Ollama,
}

pub(crate) fn run(api: Api, file: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let body = std::fs::read(file)
        .map_err(|source| Failure::Unreadable { file: file.display().to_string(), source })?;
    let has_lines = file.extension().is_some_and(|extension| extension == "jsonl");
    let body = if has_lines { framed(api, body) } else { body };
    let outcome = aggregated(api, body);
    match writeln!(out, "{}", escaped_json(&outcome.to_string())).and_then(|()| out.flush()) {
        // The exit code depends on the recording, even if the reader has closed the pipe.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(Failure::Output(error)),
        _ => {}
    }
    match outcome.get("error") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(Failure::Recording),
    }
}

/// Returns the body whose payloads are these lines, in the framing of the API.
fn framed(api: Api, lines: Vec<u8>) -> Vec<u8> {
    match api {
        Api::OpenaiChat => openai::recording::frame_json_lines(&lines),
        Api::OpenaiResponses => openai::recording::frame_responses_json_lines(&lines),
        Api::AnthropicMessages => anthropic::recording::frame_json_lines(&lines),
        Api::Gemini => gemini::recording::frame_json_lines(&lines),
        // Lines are its framing.
        Api::Ollama => lines,
    }
}

fn aggregated(api: Api, body: Vec<u8>) -> Value {
    match api {
        Api::OpenaiChat => openai::recording::aggregate([body]),
        Api::OpenaiResponses => openai::recording::aggregate_responses([body]),
        Api::AnthropicMessages => anthropic::recording::aggregate([body]),
        Api::Gemini => gemini::recording::aggregate([body]),
        Api::Ollama => ollama::recording::aggregate([body]),
    }
}
