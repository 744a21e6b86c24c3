use advisor_core::{BlockContent, Message, MessageContent, Part};

/// Says how many tokens a message takes, for [`Window::Tokens`](crate::Window::Tokens).
///
/// It is asked for the messages of a conversation's end at the beginning of each turn, so it is cheap, or
/// remembers what it counted.
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
    /// The tokens of this message, those of its role and frame included.
    fn count(&self, message: &Message) -> usize;
}

impl<F: Fn(&Message) -> usize + Send + Sync + 'static> TokenCounter for F {
    fn count(&self, message: &Message) -> usize {
        self(message)
    }
}

/// A guess without a vocabulary: a token for every four bytes of text and of arguments, four for the frame of a
/// message, and a thousand for an image or another piece of media.
///
/// Text in English comes to about as much with most models; other scripts take fewer tokens than it says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApproximateTokens;

const FRAME: usize = 4;
const MEDIA: usize = 1000;

impl TokenCounter for ApproximateTokens {
    fn count(&self, message: &Message) -> usize {
        count_with(message, |text| text.len().div_ceil(4))
    }
}

/// The tokens of a message, by those of its texts.
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
