//! `ReplaceText`: the advisor that replaces words or matches.

use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, BlockKind, ChatRequest, ChunkStream, PendingText, Phase,
    Placement, Result, StreamAdvisor, async_trait,
};

use crate::policy::search::words::LetterCase;
use crate::policy::search::{Found, TextSearch};

/// Replaces words, or the matches of a pattern, in the text of an answer while it streams.
///
/// The result is that of a replacement in the whole text of each block, however the text arrives. A replacement is
/// not searched again. Text, reasoning and refusals are edited by default; arguments of calls are never. A block whose
/// text changes loses its provider data, such as the signature of a reasoning.
///
/// Each block is searched alone: a word that begins in one block and ends in the next one is not found. Citations,
/// media and opaque blocks pass as they are.
///
/// Its position is [`Phase::ModelCall`], inside memory, which stores the shown text. Of several policies, the one
/// added last is nearest to the model and acts first.
///
/// # Ordering
/// For words, it holds back only text that may begin a word, until the next piece or the end of the block. That text is
/// always shorter than the longest word. All other text is emitted in the poll in which it arrived (law S2).
///
/// For a pattern, it holds back only text that may begin a match, at most as many bytes as the longest match. A match
/// is emitted once no further text can make it longer. A pattern that ends with `\b` also waits for the next
/// character, on which this match depends.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, FinishReason};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use common_advisors::policy::ReplaceText;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let answer = Answer::new().text("Mal").text("lory, 555-0").text("199.").finish(FinishReason::Stop);
/// let client = ChatClient::builder(ScriptedModel::new([answer]))
///     .advisor(ReplaceText::new([("Mallory", "[name]")]))
///     .advisor(ReplaceText::for_pattern(r"\b\d{3}-\d{4}\b", "[phone]")?)
///     .build()?;
/// assert_eq!(client.prompt().user("Who was it?").call().await?.text(), "[name], [phone].");
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct ReplaceText {
    search: TextSearch,
    /// The replacement of each word, or of the pattern.
    replacements: Arc<[String]>,
    kinds: Vec<BlockKind>,
}

impl ReplaceText {
    /// Creates a policy that replaces each word, in exactly this spelling, by its replacement.
    ///
    /// Words are literal: no character in them has a special meaning. If two begin at the same position, the one
    /// listed first wins. Empty words are ignored.
    pub fn new<W: Into<String>, R: Into<String>>(words: impl IntoIterator<Item = (W, R)>) -> Self {
        Self::for_words(words, LetterCase::Exact)
    }

    /// Creates a policy that replaces each word by its replacement. `case` says which letters match.
    pub fn for_words<W: Into<String>, R: Into<String>>(
        words: impl IntoIterator<Item = (W, R)>,
        case: LetterCase,
    ) -> Self {
        let words = words.into_iter().map(|(word, replacement)| (word.into(), replacement.into()));
        let (words, replacements): (Vec<String>, Vec<String>) = words.unzip();
        Self::new_for(TextSearch::for_words(&words, case), replacements)
    }

    /// Creates a policy that replaces each match of a regular expression by a text, as it is: `$1` has no meaning.
    ///
    /// The pattern has the syntax of the crate `regex`. Text that may belong to a match is held back, so matches must have
    /// a longest length: `\d{1,20}` is possible, `\d+` is not. In this length, `[0-9]` counts as one byte. `\d` counts as
    /// four, since it matches the digits of all scripts.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) for a pattern that is invalid, matches an empty text, or can match more than 64 KiB.
    pub fn for_pattern(pattern: &str, replacement: impl Into<String>) -> Result<Self> {
        Ok(Self::new_for(TextSearch::for_pattern(pattern)?, vec![replacement.into()]))
    }

    fn new_for(search: TextSearch, replacements: Vec<String>) -> Self {
        let kinds = vec![BlockKind::Text, BlockKind::Reasoning, BlockKind::Refusal];
        Self { search, replacements: replacements.into(), kinds }
    }

    /// Sets the kinds of blocks whose text is edited. Kinds without text have no effect.
    pub fn with_kinds(self, kinds: impl IntoIterator<Item = BlockKind>) -> Self {
        Self { kinds: kinds.into_iter().collect(), ..self }
    }
}

impl AdvisorInfo for ReplaceText {
    fn name(&self) -> &'static str {
        "replace-text"
    }

    fn placement(&self) -> Placement {
        Placement { phase: Phase::ModelCall, role: AdvisorRole::InsideMemory }
    }
}

#[async_trait]
impl StreamAdvisor for ReplaceText {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let Self { mut search, replacements, kinds } = (*self).clone();
        let stream = next.next_stream(request).await?;
        Ok(stream.edit_text(search.hold_back(), move |text: &mut PendingText<'_>| {
            if !kinds.contains(&text.kind) {
                return text.pass(text.len());
            }
            loop {
                match search.find((&*text).into()) {
                    Found::Match(found) => {
                        let replacement = replacements.get(found.word).map(String::as_str);
                        search.forget(text.get(..found.place.end).unwrap_or_default());
                        text.pass(found.place.start);
                        text.replace(found.place.len(), replacement.unwrap_or_default());
                    }
                    // Only a possible beginning of a match is left.
                    Found::Nothing(until) => {
                        search.forget(text.get(..until).unwrap_or_default());
                        return text.pass(until);
                    }
                }
            }
        }))
    }
}
