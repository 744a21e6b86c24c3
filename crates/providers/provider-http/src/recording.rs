//! Recorded bodies of answers: aggregates them without a network.

use std::collections::VecDeque;

use advisor_core::{
    AggregatorSettings, Block, BlockContent, BlockKind, ChatResponse, Chunk, Error, FinishReason,
    MediaSource, MessageAggregator, Result, text_with_sources,
};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::answer::{AnswerDecoder, WireFormat};
use crate::redaction::Redaction;
use crate::sse::SseLimits;

/// Aggregates a recorded body, given in pieces as from the network, and returns the outcome as JSON.
///
/// The fields are `text`, `reasoning`,
/// `refusal`, `tool_calls` (each `id`, `name`, `arguments` as written), `finish_reason` as the provider wrote it,
/// `usage` (or `null`) and `error`. Media, if there are any, are `media` (each `mime`, and the number of `bytes`, a `url` or
/// the `file` of the provider), and sources are `citations` (each with its `url`, `title` and `quote`, as far as it has
/// them). If the answer completed, `error` is `null`. Otherwise it has `kind` and `message`, and the other fields hold the
/// partial answer.
#[must_use]
pub fn aggregate<W: WireFormat, B: Into<Bytes>>(
    format: W,
    settings: AggregatorSettings,
    pieces: impl IntoIterator<Item = B>,
) -> Value {
    let decoder = AnswerDecoder::new(format, SseLimits::default(), Redaction::default());
    match read(MessageAggregator::with_settings(1, settings), decoder, pieces) {
        Ok(response) => outcome(&response, None),
        Err(error) => {
            let nothing = ChatResponse::from_blocks(1, [], FinishReason::Empty);
            outcome(error.partial().unwrap_or(&nothing), Some(&error))
        }
    }
}

/// Frames payloads, one per line, as server-sent events. So a recording without framing can be read.
///
/// Nothing is added at the end: a recording that was cut stays cut. A byte-order mark at the beginning is dropped.
/// The payloads stay bytes: the decoder checks whether they are UTF-8, as for any other recording.
///
/// ```
/// use provider_http::recording::frame_json_lines;
///
/// assert_eq!(frame_json_lines(b"{}\n\n{}\n"), b"data: {}\n\ndata: {}\n\n");
/// assert_eq!(frame_json_lines(b"\xEF\xBB\xBF{}"), b"data: {}\n\n");
/// ```
#[must_use]
pub fn frame_json_lines(lines: &[u8]) -> Vec<u8> {
    let lines = lines.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(lines);
    let payloads = lines.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    payloads.flat_map(|payload| [b"data: ", payload, b"\n\n"].concat()).collect()
}

fn read<W: WireFormat, B: Into<Bytes>>(
    mut aggregator: MessageAggregator,
    mut decoder: AnswerDecoder<W>,
    pieces: impl IntoIterator<Item = B>,
) -> Result<ChatResponse> {
    let mut chunks = VecDeque::new();
    for piece in pieces {
        decoder.push(piece.into());
        take_deltas(&mut decoder, &mut aggregator, &mut chunks)?;
    }
    decoder.finish();
    take_deltas(&mut decoder, &mut aggregator, &mut chunks)?;
    Ok(aggregator.finish(&mut chunks)?)
}

fn take_deltas<W: WireFormat>(
    decoder: &mut AnswerDecoder<W>,
    aggregator: &mut MessageAggregator,
    chunks: &mut VecDeque<Chunk>,
) -> Result<()> {
    while let Some(delta) = decoder.next() {
        let taken = delta.and_then(|delta| Ok(aggregator.push(delta, chunks)?));
        taken.map_err(|error| error.or_partial(aggregator.partial()))?;
        chunks.clear();
    }
    Ok(())
}

fn outcome(response: &ChatResponse, error: Option<&Error>) -> Value {
    let blocks = response.message().blocks();
    let joined = |kind| blocks.iter().filter_map(|block| block.content().text_of(kind)).collect::<String>();
    let calls: Vec<Value> = blocks
        .iter()
        .filter_map(Block::as_tool_call)
        .map(|call| json!({ "id": call.id, "name": call.name, "arguments": call.arguments }))
        .collect();
    let list = |name: &str, items: Vec<Value>| (!items.is_empty()).then(|| (name.to_owned(), json!(items)));
    let contents = || blocks.iter().map(Block::content);
    let media = list("media", contents().filter_map(media_of).collect());
    let citations = list("citations", contents().filter_map(citation_of).collect());
    let others =
        [
            ("text".to_owned(), json!(joined(BlockKind::Text))),
            ("reasoning".to_owned(), json!(joined(BlockKind::Reasoning))),
            ("refusal".to_owned(), json!(joined(BlockKind::Refusal))),
            ("tool_calls".to_owned(), json!(calls)),
            ("finish_reason".to_owned(), json!(response.finish.as_written)),
            ("usage".to_owned(), json!(response.usage)),
            (
                "error".to_owned(),
                json!(error.map(
                    |error| json!({ "kind": error.kind().as_str(), "message": text_with_sources(error) })
                )),
            ),
        ];
    Value::Object(others.into_iter().chain(media).chain(citations).collect())
}

fn media_of(content: &BlockContent) -> Option<Value> {
    let BlockContent::Media(media) = content else { return None };
    Some(match &media.source {
        MediaSource::Bytes(bytes) => json!({ "mime": media.mime, "bytes": bytes.len() }),
        MediaSource::Url(url) => json!({ "mime": media.mime, "url": url }),
        MediaSource::ProviderFile(file) => json!({ "mime": media.mime, "file": file }),
        _ => json!({ "mime": media.mime }),
    })
}

fn citation_of(content: &BlockContent) -> Option<Value> {
    let BlockContent::Citation(citation) = content else { return None };
    Some(json!(citation))
}
