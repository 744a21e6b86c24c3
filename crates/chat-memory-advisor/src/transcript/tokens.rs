//! `TokenCounter`: token counts of messages, by an estimate or by the vocabularies of OpenAI's models.

use advisor_core::{BlockContent, Message, MessageContent, Part};

/// Counts the tokens of messages, for [`Window::Tokens`](crate::Window::Tokens).
///
/// Memory counts the latest messages of a conversation at the beginning of each turn, and before each request if
/// [`OnOverflow`](crate::OnOverflow) bounds the running turn. So an implementation must be cheap or cache its counts.
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

#[cfg(feature = "tiktoken")]
pub use by_vocabulary::Tiktoken;

#[cfg(feature = "tiktoken")]
mod by_vocabulary {
    use std::fmt;

    use advisor_core::{Error, Message, Result};
    use tiktoken_rs::{CoreBPE, bpe_for_model};

    use super::{TokenCounter, count_with};

    /// Counts the tokens of texts with the vocabularies of OpenAI's models.
    ///
    /// Texts and arguments are counted exactly. Frames of messages and calls count four tokens each, and a piece of
    /// media a thousand, since their real size is not documented. A vocabulary is loaded when a counter first needs
    /// it, and is shared from then on.
    ///
    /// # Example
    /// ```
    /// use advisor_core::Message;
    /// use chat_memory_advisor::{Tiktoken, TokenCounter};
    ///
    /// let counter = Tiktoken::for_model("gpt-4o")?;
    /// assert_eq!(counter.count(&Message::user("tiktoken is great!")), 4 + 6);
    /// # Ok::<(), advisor_core::Error>(())
    /// ```
    #[derive(Clone, Copy)]
    pub struct Tiktoken(&'static CoreBPE);

    impl Tiktoken {
        /// Creates a counter for a model of OpenAI, by its name.
        ///
        /// # Errors
        /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) for a model whose vocabulary is not
        /// known.
        pub fn for_model(model: &str) -> Result<Self> {
            bpe_for_model(model).map(Self).map_err(|_| {
                Error::configuration(format!(
                    "the vocabulary of the model `{model}` is not known; name one that shares it, such as `gpt-4o`, or count with another `TokenCounter`"
                ))
            })
        }
    }

    impl TokenCounter for Tiktoken {
        fn count(&self, message: &Message) -> usize {
            // A special token in a text counts as ordinary text.
            count_with(message, |text| self.0.count_ordinary(text))
        }
    }

    impl fmt::Debug for Tiktoken {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Tiktoken").finish_non_exhaustive()
        }
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

    #[cfg(feature = "tiktoken")]
    mod vocabulary {
        use advisor_core::ErrorKind;

        use super::*;

        #[test]
        fn texts_and_arguments_are_counted_by_model_vocabulary() {
            let old = Tiktoken::for_model("gpt-4").unwrap();
            let new = Tiktoken::for_model("gpt-4o-mini").unwrap();
            let greeting = Message::user("안녕하세요");
            assert!(new.count(&greeting) < old.count(&greeting), "the newer one knows more of it");
            assert_eq!(
                new.count(&Message::user("<|endoftext|>")),
                4 + 7,
                "a special token in a text is text"
            );
            let call = ToolCall::new("c", "look", "{\"a\":1}");
            assert_eq!(new.count(&Message::assistant_blocks(vec![call.into()])), 4 + 4 + 1 + 5);
        }

        #[test]
        fn unknown_model_error_suggests_known_models() {
            let error = Tiktoken::for_model("unheard-of").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(error.to_string().contains("gpt-4o"), "{error}");
        }
    }
}
