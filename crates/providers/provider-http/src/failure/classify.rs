//! The kind of a failure.

use std::time::Duration;

use advisor_core::{ErrorKind, wait_in_words};

use super::provider_error::is_word;
use super::{ProviderError, Report};
use crate::redaction::ServerWords;

/// Codes and phrases for a request that is too long: of OpenAI, Groq, Mistral, llama.cpp, vLLM, OpenRouter,
/// xAI, Anthropic and Google (behind gateways). "Request too large" is a single request beyond the tokens per
/// minute: waiting does not help.
const TOO_LONG: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "context_window_exceeded",
    "maximum context length",
    "maximum prompt length",
    "max context length",
    "context size has been exceeded",
    "context window",
    "exceed context limit",
    "available context size",
    "context length",
    "prompt is too long",
    "input is too long",
    "reduce the length of the messages",
    "request too large for",
    "input token count",
];

/// Codes and phrases for a refused transcript. An error that names `messages` complains about them.
const BAD_HISTORY: &[&str] = &[
    "tool_call_id",
    "tool_call_ids",
    "tool_calls' must be followed",
    "must be a response to a preceeding message",
    "must be a response to a preceding message",
    "roles must alternate",
    "unexpected role",
    "expected last role",
    "number of function calls and responses",
    "function call turn",
    "function response parts",
    "tool_use",
    "tool_result",
    "reasoning_content",
    "thought_signature",
    "message content type",
    "each message must",
    "missing field `content`",
    "messages[",
    "messages.",
    "'messages'",
];

/// Codes and phrases for the content of a message that the server refuses: an image or a document that it cannot
/// read, or a prompt that its policy forbids. Those of OpenAI (openai-python, `responses/response_error.py`; its
/// `response.failed` has no status), Azure
/// (openai/openai-python#331), Anthropic (anthropics/claude-code#1747), Google (pollinations/pollinations#4157,
/// charmbracelet/crush#995), DashScope, and of llama.cpp and servers like it.
const BAD_INPUT: &[&str] = &[
    "invalid_prompt", "invalid_image", "invalid_base64_image", "image_too", "image_parse",
    "image_content_policy", "image_file", "unsupported_image", "failed_to_download_image", "content_filter",
    "content_policy_violation", "content management policy", "data_inspection", "datainspection",
    "inappropriate content", "could not process image", "could not process pdf", "process input image",
    "image is not valid", "unsupported image", "unsupported mime type", "image.source", "document.source",
    "image_url", IMAGE_INPUT,
];

/// Phrases of OpenAI, and of Anthropic (`tools.0.custom.input_schema: …`), for a tool or a schema that the server refuses.
/// Its names and texts may contain any of the words above.
const BAD_TOOL: &[&str] = &[
    "invalid schema for", "tools[", "'tools',", "tools.0", "tools.1", "tools.2", "tools.3", "tools.4",
    "tools.5", "tools.6", "tools.7", "tools.8", "tools.9",
];

/// llama.cpp refuses an image with this, and a status 500 (ggml-org/llama.cpp#15377).
const IMAGE_INPUT: &str = "image input is not supported";

/// Codes and types of OpenAI, Anthropic (`authentication_error`, `permission_error`, `billing_error`) and Google
/// (`UNAUTHENTICATED`, `PERMISSION_DENIED`).
const NO_ACCESS: &[&str] = &[
    "invalid_api_key", "authentication", "unauthorized", "unauthenticated", "permission",
    "insufficient_quota", "insufficient_balance", "billing",
];

/// Phrases of Google for a refused key.
const BAD_KEY: &[&str] = &["api key not valid", "api key expired", "api_key_invalid"];

/// Those of OpenAI, Anthropic (`rate_limit_error`) and Google (`RESOURCE_EXHAUSTED`), and of DashScope.
const TOO_MANY: &[&str] =
    &["rate_limit", "rate limit", "too_many_requests", "too many requests", "resource_exhausted", "throttl"];

/// Those of OpenAI and Anthropic (`invalid_request_error`, `not_found_error`) and Google (`INVALID_ARGUMENT`).
const BAD_REQUEST: &[&str] = &[
    "invalid_request", "bad_request", "badrequest", "invalid_argument", "failed_precondition", "not_found",
    "unprocessable",
];

/// Codes and phrases for an unknown model, in answers without a status 404:
/// - `model_not_found` of OpenAI and xAI behind gateways
/// - `not_found_error` of Anthropic inside an answer
/// - `model_decommissioned` of Groq
/// - `x is not a valid model ID` of OpenRouter (RightNow-AI/openfang#697)
/// - `Model Not Exist` of DeepSeek (deepwn/addi#13)
const UNKNOWN_MODEL: &[&str] = &[
    "model_not_found", "not_found_error", "model_decommissioned", "is not a valid model id",
    "model not exist",
];

/// Returns the kind of a provider's error. `status` is the HTTP status of the response, or the one that the
/// error names.
pub(super) fn kind_of(report: &Report, status: Option<u16>, asked: Option<Duration>) -> ErrorKind {
    let words = [&report.code, &report.kind];
    let coded = |table: &[&str]| words.into_iter().flatten().any(|word| word.contains_any(table));
    let phrased = |table: &[&str]| coded(table) || report.message.contains_any(table);
    let names_tool = |text: &ServerWords| text.contains_any(BAD_TOOL);
    let of_tools =
        !coded(BAD_INPUT) && (names_tool(&report.message) || report.param.as_ref().is_some_and(names_tool));
    let refused = status.is_none_or(|status| status < 500);
    if coded(&["tool_use_failed"]) {
        // The model wrote a call that the server could not read; the next attempt may succeed (Q46).
        ErrorKind::Provider { status: None }
    } else if !matches!(status, Some(401..=403)) && phrased(TOO_LONG) {
        ErrorKind::ContextOverflow
    } else if matches!(status, Some(401..=403)) || (refused && (coded(NO_ACCESS) || phrased(BAD_KEY))) {
        ErrorKind::Authentication
    } else if matches!(status, Some(429 | 498)) || (refused && phrased(TOO_MANY)) {
        ErrorKind::RateLimited { retry_after: asked }
    } else if matches!(status, Some(408 | 409 | 425)) {
        ErrorKind::Provider { status }
    } else if phrased(&[IMAGE_INPUT]) {
        ErrorKind::InvalidInput
    } else if matches!(status, Some(300..400)) {
        ErrorKind::Configuration
    } else if matches!(status, Some(400..500)) || (refused && (coded(BAD_REQUEST) || coded(BAD_INPUT))) {
        if phrased(BAD_INPUT) && !of_tools {
            ErrorKind::InvalidInput
        } else if phrased(BAD_HISTORY) {
            ErrorKind::InvalidHistory
        } else if matches!(status, Some(404 | 410)) || phrased(UNKNOWN_MODEL) {
            ErrorKind::NotFound
        } else {
            ErrorKind::InvalidRequest
        }
    } else {
        ErrorKind::Provider { status }
    }
}

/// Returns the meaning of the kind and the remedy. Of the provider's words it contains only the code.
pub(super) fn sentence(kind: ErrorKind, asked: Option<Duration>, provider: &ProviderError) -> String {
    let what = match kind {
        ErrorKind::Authentication => {
            "the provider refuses access; check the key, its permissions, and the account's credit"
        }
        ErrorKind::RateLimited { .. } if asked.is_some() => "the provider wants fewer requests",
        ErrorKind::RateLimited { .. } => "the provider wants fewer requests; ask again later",
        ErrorKind::ContextOverflow => {
            "the request is longer than the model can read; shorten the conversation, the tools or the tokens to answer with"
        }
        ErrorKind::InvalidHistory => {
            "the provider refuses the transcript; the form of its messages may not suit this server"
        }
        ErrorKind::InvalidInput => {
            "the provider refuses the content of a message, such as an image that it cannot read; send the message without it"
        }
        ErrorKind::NotFound => {
            "the provider does not know the model or the address; check the model and the base URL"
        }
        ErrorKind::InvalidRequest => {
            "the provider refuses the request; check the model, the options and the base URL"
        }
        ErrorKind::Configuration => {
            "the provider answers with a redirect, which is not followed with the key; set the base URL to where it leads"
        }
        _ => "the provider failed",
    };
    let status = provider.status.map(|status| format!("HTTP {status}"));
    // A code with several words stays in the source error.
    let code = provider.code.as_deref().or(provider.kind.as_deref()).filter(|code| is_word(code));
    let details: Vec<String> = status.into_iter().chain(code.map(str::to_owned)).collect();
    let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
    let asked = asked.filter(|_| matches!(kind, ErrorKind::RateLimited { .. } | ErrorKind::Provider { .. }));
    let when = asked.map_or_else(String::new, |asked| format!("; ask again in {}", wait_in_words(asked)));
    format!("{what}{when}{details}")
}
