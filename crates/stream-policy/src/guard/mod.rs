//! `Guard`: the matched texts and the reply, from which both advisors are made.

pub(crate) mod input;
mod matcher;
pub(crate) mod output;

use std::sync::Arc;

use advisor_core::{Block, Text};

use self::input::InputGuard;
use self::matcher::Matcher;
use self::output::OutputGuard;
use crate::search::pattern::{PatternError, PatternSearch};
use crate::search::words::{LetterCase, Words};

/// A guard against texts: what it matches, and its reply.
///
/// [`on_input`](Self::on_input) is the advisor for the user's messages, [`on_output`](Self::on_output) that for
/// answers. To change a text and go on, take [`ReplaceText`](crate::ReplaceText).
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, FinishReason};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use stream_policy::{Guard, LetterCase};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let answer = Answer::new().text("The card is 4111-").text("1111, I think.").finish(FinishReason::Stop);
/// let client = ChatClient::builder(ScriptedModel::new([answer]))
///     .advisor(Guard::for_words(["password"], LetterCase::Ignore).on_input())
///     .advisor(Guard::for_pattern(r"\b\d{4}-\d{4}\b")?.with_reply("[I name no cards.]").on_output())
///     .build()?;
/// let refused = client.prompt().user("Which Password?").call().await?;
/// assert_eq!(refused.text(), "I cannot help with that.");
/// let ended = client.prompt().user("Which card?").call().await?;
/// assert_eq!(ended.text(), "The card is [I name no cards.]");
/// assert_eq!(ended.finish().reason, FinishReason::ContentFilter);
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct Guard {
    name: Option<Text>,
    matcher: Matcher,
    reply: Text,
}

impl Guard {
    /// Creates a guard against words. `case` says which letters match; a guard replaces nothing, so
    /// [`LetterCase::Preserve`] is the same as [`LetterCase::Ignore`].
    ///
    /// Words are literal, and also match inside a longer word. Empty words are ignored.
    pub fn for_words<W: Into<String>>(words: impl IntoIterator<Item = W>, case: LetterCase) -> Self {
        let mut words: Vec<String> = words.into_iter().map(Into::into).collect();
        // The shortest one first: a word ends the answer without waiting for a longer one that begins with it.
        words.sort_by_key(|word| word.chars().count());
        Self::new(Matcher::Words(Arc::new(Words::new(words.iter().map(String::as_str), case))))
    }

    /// Creates a guard against the matches of a regular expression, in the syntax of the crate `regex`.
    ///
    /// Matches must have a longest length, as in [`ReplaceText::for_pattern`](crate::ReplaceText::for_pattern).
    ///
    /// # Errors
    /// For a pattern that is invalid, matches an empty text, or can match more than 64 KiB.
    pub fn for_pattern(pattern: &str) -> Result<Self, PatternError> {
        Ok(Self::new(Matcher::Pattern(PatternSearch::new(pattern)?)))
    }

    /// Creates a guard against texts for which `is_match` returns true. It gets the whole text of a message or block.
    ///
    /// On output it therefore holds back each block until its end. It runs on the async threads, so it must not block.
    pub fn for_texts(is_match: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self::new(Matcher::Texts(Arc::new(is_match)))
    }

    fn new(matcher: Matcher) -> Self {
        Self { name: None, matcher, reply: "I cannot help with that.".into() }
    }

    /// Sets the name that [`explain`](advisor_core::AdvisorChain::explain) shows, `input-guard` or `output-guard` by
    /// default. It distinguishes several guards of a chain.
    pub fn with_name(self, name: impl Into<Text>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Sets the reply to the user, "I cannot help with that." by default. An empty one leaves nothing in its place.
    pub fn with_reply(self, reply: impl Into<Text>) -> Self {
        Self { reply: reply.into(), ..self }
    }

    /// Returns the advisor that checks the messages of the user.
    pub fn on_input(self) -> InputGuard {
        InputGuard::new(self)
    }

    /// Returns the advisor that checks answers while they stream.
    pub fn on_output(self) -> OutputGuard {
        OutputGuard::new(self)
    }

    /// Returns the reply as a block, unless it is empty.
    fn reply(&self) -> Option<Block> {
        (!self.reply.is_empty()).then(|| Block::text(self.reply.as_str()))
    }
}
