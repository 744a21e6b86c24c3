//! `TokenCounter` and `ApproximateTokens`: token counts of messages.

use advisor_core::{BlockContent, Message, MessageContent, Part};

/// Counts the tokens of messages, for [`Window::Tokens`](crate::Window::Tokens).
///
/// Memory counts the latest messages of a conversation at the beginning of each turn, so an implementation must be
/// cheap or cache its counts.
///
/// # Example
/// ```
/// use advisor_core::Message;
/// use chat_memory_advisor::TokenCounter;
///
/// let words = |message: &Message| message.text().split_whitespace().count();
/// assert_eq!(words.count(&Message::user("How late is it?")), 4);
/// ```
pub trait TokenCounter: Send + Sync + 'static {
    /// Returns the number of tokens of this message, including those of its role and frame.
    fn count(&self, message: &Message) -> usize;
}

impl<F: Fn(&Message) -> usize + Send + Sync + 'static> TokenCounter for F {
    fn count(&self, message: &Message) -> usize {
        self(message)
    }
}

/// An estimate without a vocabulary. Every four bytes of text and arguments count one token. The frame of a
/// message or call counts four, and each piece of media a thousand.
///
/// For English text, most models come close to this number; for other scripts, it is too high.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "it is an estimate without settings")]
pub struct ApproximateTokens;

const FRAME: usize = 4;
const MEDIA: usize = 1000;

impl TokenCounter for ApproximateTokens {
    fn count(&self, message: &Message) -> usize {
        count_with(message, |text| text.len().div_ceil(4))
    }
}

/// Counts the tokens of a message; `text` counts those of one text.
pub(crate) fn count_with(message: &Message, text: impl Fn(&str) -> usize) -> usize {
    let of_block = |content: &BlockContent| match content {
        BlockContent::Text(said) | BlockContent::Reasoning(said) | BlockContent::Refusal(said) => text(said),
        BlockContent::ToolCall(call) => text(&call.name) + text(&call.arguments) + FRAME,
        BlockContent::Media(_) => MEDIA,
        _ => FRAME,
    };
    let of_part = |part: &Part| match part {
        Part::Text(said) => text(said),
        Part::Json(value) => text(&value.to_string()),
        _ => MEDIA,
    };
    FRAME
        + match message.content() {
            MessageContent::Assistant(blocks) => blocks.iter().map(|block| of_block(block.content())).sum(),
            MessageContent::Tool(result) => result.parts.iter().map(of_part).sum(),
            MessageContent::User(parts) => parts.iter().map(of_part).sum::<usize>(),
            MessageContent::System(said) => text(said),
            _ => text(&message.text()),
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use advisor_core::{Block, Media, ToolCall, ToolResult};

    #[test]
    fn everything_that_is_sent_counts() {
        let call = ToolCall::new("c", "look", "{\"a\":1}");
        let table = [
            (Message::user("12345678"), 6),
            (Message::assistant_blocks(vec![Block::text("1234"), call.clone().into()]), 4 + 1 + 1 + 2 + 4),
            (Message::tool(ToolResult::new(&call, vec!["1".into()])), 5),
            (Message::user_parts(vec![Part::Image(Media::from_url("image/png", "u"))]), 1004),
        ];
        for (message, tokens) in table {
            assert_eq!(ApproximateTokens.count(&message), tokens, "{message:?}");
        }
    }
}
