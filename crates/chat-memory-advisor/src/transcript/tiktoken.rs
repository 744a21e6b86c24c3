//! `Tiktoken`: exact text counts for OpenAI models (feature `tiktoken`).

use std::fmt;

use advisor_core::{Error, Message, Result};
use tiktoken_rs::{CoreBPE, bpe_for_model};

use crate::TokenCounter;
use crate::transcript::token_counter::count_with;

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

#[cfg(test)]
mod tests {
    use super::*;
    use advisor_core::{ErrorKind, ToolCall};

    #[test]
    fn texts_and_arguments_are_counted_by_model_vocabulary() {
        let old = Tiktoken::for_model("gpt-4").unwrap();
        let new = Tiktoken::for_model("gpt-4o-mini").unwrap();
        let greeting = Message::user("안녕하세요");
        assert!(new.count(&greeting) < old.count(&greeting), "the newer one knows more of it");
        assert_eq!(new.count(&Message::user("<|endoftext|>")), 4 + 7, "a special token in a text is text");
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
