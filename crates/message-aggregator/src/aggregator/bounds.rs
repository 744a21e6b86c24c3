//! `AggregateError`, and `AnswerBytes`, which counts what is held for one answer.

use crate::{BlockContent, ChatResponse, Finish, FinishReason, Media, MediaSource, ProviderData, Text, json};

pub(crate) type Result<T = (), E = AggregateError> = std::result::Result<T, E>;

/// Checks a bound.
#[inline]
pub(crate) fn within(what: &'static str, count: usize, limit: usize) -> Result {
    if count > limit { Err(AggregateError::TooLarge { what, limit }) } else { Ok(()) }
}

/// Reason why deltas do not form a response.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AggregateError {
    /// The source ended with neither a finish reason nor the protocol's end marker.
    #[error(
        "the stream ended before the answer was complete: neither a finish reason nor an end marker came"
    )]
    Truncated {
        /// The answer so far. A call that the provider had not ended is incomplete.
        partial: Box<ChatResponse>,
    },
    /// The answer is larger than the bounds allow.
    #[error("the answer has more than {limit} {what}; raise the aggregator's limits if that is intended")]
    TooLarge {
        /// The quantity that exceeds its bound.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// A fragment arrived for a block that had already ended.
    #[error(
        "a fragment came for block {block}, which had ended; the eager rule suits only sequential providers"
    )]
    BlockEnded {
        /// The index of the block in its round.
        block: u32,
    },
}

/// The bytes held for an answer, and their limit.
#[derive(Debug)]
pub(crate) struct AnswerBytes {
    kept: usize,
    limit: usize,
}

impl AnswerBytes {
    pub(crate) fn new(limit: usize) -> Self {
        Self { kept: 0, limit }
    }

    /// Counts bytes before they are stored.
    #[inline]
    pub(crate) fn add(&mut self, bytes: usize) -> Result {
        let kept = self.kept.saturating_add(bytes);
        within("bytes in one answer", kept, self.limit)?;
        self.kept = kept;
        Ok(())
    }

    /// Sets a text that is set once, unless it is set already.
    pub(crate) fn set_once(&mut self, known: &mut Option<Text>, text: Option<Text>) -> Result {
        if let (None, Some(text)) = (&known, text.filter(|text| !text.is_empty())) {
            self.add(text.len())?;
            *known = Some(text);
        }
        Ok(())
    }
}

pub(crate) fn of_content(content: &BlockContent) -> usize {
    match content {
        BlockContent::Text(text) | BlockContent::Reasoning(text) | BlockContent::Refusal(text) => text.len(),
        BlockContent::ToolCall(call) => call.id.len() + call.name.len() + call.arguments.len(),
        BlockContent::Media(media) => of_media(media),
        BlockContent::Citation(citation) => {
            [&citation.url, &citation.title, &citation.quote].map(|text| of_text(text.as_ref())).iter().sum()
        }
        BlockContent::Opaque(opaque) => opaque.format.len() + opaque.name.len() + json::length(&opaque.value),
    }
}

fn of_media(media: &Media) -> usize {
    let source = match &media.source {
        MediaSource::Url(text) | MediaSource::ProviderFile(text) => text.len(),
        MediaSource::Bytes(bytes) => bytes.len(),
    };
    media.mime.len() + source + of_text(media.name.as_ref())
}

pub(crate) fn of_provider_data(data: &ProviderData) -> usize {
    data.format.len() + json::length(&data.value)
}

pub(crate) fn of_finish(finish: &Finish) -> usize {
    let reason = match &finish.reason {
        FinishReason::Other(reason) => reason.len(),
        _ => 0,
    };
    reason + of_text(finish.as_written.as_ref())
}

fn of_text(text: Option<&Text>) -> usize {
    text.map_or(0, |text| text.len())
}
