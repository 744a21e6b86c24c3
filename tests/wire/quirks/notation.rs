//! Chunks as lines of text, as the transcripts write them.

use std::error::Error as _;

use advisor_chain::messages::{BlockHead, ChatResponse, Finish, FinishReason, ToolEvent, Usage};
use advisor_chain::openai::ProviderError;
use advisor_tests::prelude::*;

/// Returns the line of a chunk, without its line end.
pub(crate) fn chunk_line(chunk: &Chunk) -> String {
    match chunk {
        Chunk::Opened { block, head } => format!("open {} {}", place(*block), head_words(head)),
        Chunk::Delta { block, delta } => {
            let (kind, content) = delta_words(delta);
            format!("{kind} {} {content}", place(*block))
        }
        Chunk::Closed { block, content } => format!("close {}{}", place(*block), closing_words(content)),
        Chunk::Tool(event) => tool_words(event),
        Chunk::Usage { usage, .. } => format!("usage{}", usage_words(usage)),
        Chunk::RoundCompleted(response) => format!("round completed, {}", end_words(response)),
        Chunk::Completed(response) => format!("completed, {}", end_words(response)),
        other => panic!("no line for {other:?}"),
    }
}

/// Returns the line of an error, with the server's words.
pub(crate) fn error_line(error: &Error) -> String {
    let kind = match error.kind() {
        ErrorKind::Provider { status: Some(status) } => format!("provider {status}"),
        ErrorKind::RateLimited { retry_after: Some(after) } => {
            format!("rate_limited for {} s", after.as_secs())
        }
        ErrorKind::Protocol { position: Some(position) } => format!("protocol at {position}"),
        kind => kind.as_str().to_owned(),
    };
    let source = error.source().and_then(|source| source.downcast_ref::<ProviderError>());
    let said = source.map(|said| said.message.as_str()).filter(|said| !said.is_empty());
    let said = said.map_or_else(String::new, |said| format!(", said {}", quoted(said)));
    let wrote = source.and_then(|said| said.failed_generation.as_deref());
    let wrote = wrote.map_or_else(String::new, |wrote| format!(", the model wrote {}", quoted(wrote)));
    format!("error {kind}{said}{wrote}")
}

/// The position of a block, with its part if an advisor added it.
fn place(block: BlockId) -> String {
    match block.part() {
        0 => block.position().to_string(),
        part => format!("{}.{part}", block.position()),
    }
}

/// Text as it is, or as a JSON string if its ends would be invisible.
fn shown(text: &str) -> String {
    let is_plain =
        !text.is_empty() && text.trim() == text && !text.contains(char::is_control) && !text.starts_with('"');
    if is_plain { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn head_words(head: &BlockHead) -> String {
    let kind = json!(head.kind).as_str().unwrap().to_owned();
    let call = head.call.as_ref().map_or_else(String::new, |call| format!(" {} {}", call.name, call.call_id));
    format!("{kind}{call}")
}

fn delta_words(delta: &BlockDelta) -> (&'static str, String) {
    match delta {
        BlockDelta::Text(text) => ("text", shown(text)),
        BlockDelta::Reasoning(text) => ("reasoning", shown(text)),
        BlockDelta::Refusal(text) => ("refusal", shown(text)),
        BlockDelta::Arguments(text) => ("arguments", shown(text)),
        BlockDelta::Media(media) => ("media", json!(media).to_string()),
        BlockDelta::Citation(citation) => ("citation", json!(citation).to_string()),
        BlockDelta::Opaque(opaque) => ("opaque", format!("{} {}", opaque.name, opaque.value)),
        other => panic!("no words for {other:?}"),
    }
}

fn closing_words(content: &Block) -> String {
    let incomplete = content.as_tool_call().is_some_and(|call| !call.complete);
    let mut words = if incomplete { " incomplete".to_owned() } else { String::new() };
    for data in content.provider_data() {
        words.push_str(&format!(" with {}", data.value));
    }
    words
}

fn tool_words(event: &ToolEvent) -> String {
    match &event.kind {
        ToolEventKind::Started { arguments } => format!("run {} {}", event.name, shown(arguments)),
        ToolEventKind::NotStarted { .. } => format!("refuse {}", event.name),
        ToolEventKind::Finished { result } => format!("result {} {}", event.name, shown(&result.text())),
        other => panic!("no words for {other:?}"),
    }
}

fn usage_words(usage: &Usage) -> String {
    let counts = [
        ("in", usage.input_tokens),
        ("out", usage.output_tokens),
        ("total", usage.total_tokens),
        ("cached", usage.cached_input_tokens),
        ("written", usage.cache_write_tokens),
        ("reasoning", usage.reasoning_tokens),
    ];
    counts.iter().filter_map(|(word, count)| Some(format!(" {word} {}", (*count)?))).collect()
}

fn end_words(response: &ChatResponse) -> String {
    let origin = [("id", response.response_id.as_deref()), ("model", response.model.as_deref())];
    let origin = origin.iter().filter_map(|(word, value)| Some(format!(", {word} {}", (*value)?)));
    finish_words(&response.finish) + &origin.collect::<String>()
}

fn finish_words(finish: &Finish) -> String {
    let reason = match &finish.reason {
        FinishReason::Other(_) => "other".to_owned(),
        reason => json!(reason).as_str().unwrap().to_owned(),
    };
    let inferred = if finish.inferred { " (inferred)" } else { "" };
    let written = finish.as_written.as_ref().filter(|written| written.as_str() != reason);
    let written = written.map_or_else(String::new, |written| format!(" ({written})"));
    format!("{reason}{inferred}{written}")
}
