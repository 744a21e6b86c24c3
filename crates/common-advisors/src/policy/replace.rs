//! `ReplaceText`: the advisor that replaces words or matches.

use std::sync::Arc;

use crate::policy::search::Found;
use crate::policy::search::pattern::PatternSearch;
use crate::policy::search::words::{LetterCase, Words};
use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, BlockKind, ChatRequest, ChunkStream, HoldBack, PendingText,
    Phase, Placement, Result, StreamAdvisor, async_trait,
};

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
    replacement: Replacement,
    kinds: Vec<BlockKind>,
}

#[derive(Debug, Clone)]
enum Replacement {
    Words(Arc<WordReplacement>),
    Pattern(PatternReplacement),
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
        Self::with_replacement(Replacement::Words(Arc::new(WordReplacement::new(words, case))))
    }

    /// Creates a policy that replaces each match of a regular expression.
    ///
    /// The pattern has the syntax of the crate `regex`. Text that may belong to a match is held back, so matches must have a longest length: `\d{1,20}` is possible, `\d+` is not. In this
    /// length, `[0-9]` counts as one byte. `\d` counts as four, since it matches the digits of all scripts.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) for a pattern that is invalid, matches an empty text, or can match more than 64 KiB.
    pub fn for_pattern(pattern: &str, replacement: impl Into<String>) -> Result<Self> {
        let (search, replacement) = (PatternSearch::new(pattern)?, replacement.into().into());
        Ok(Self::with_replacement(Replacement::Pattern(PatternReplacement { search, replacement })))
    }

    fn with_replacement(replacement: Replacement) -> Self {
        let kinds = vec![BlockKind::Text, BlockKind::Reasoning, BlockKind::Refusal];
        Self { replacement, kinds }
    }

    /// Sets the kinds of blocks whose text is edited. Kinds without text have no effect.
    pub fn with_kinds(self, kinds: impl IntoIterator<Item = BlockKind>) -> Self {
        Self { kinds: kinds.into_iter().collect(), ..self }
    }

    /// Edits a stream outside a chain.
    pub fn edit(&self, stream: ChunkStream) -> ChunkStream {
        let (mut replacement, kinds) = (self.replacement.clone(), self.kinds.clone());
        stream.edit_text(replacement.hold_back(), move |text: &mut PendingText<'_>| {
            if kinds.contains(&text.kind) { replacement.replace(text) } else { text.pass(text.len()) }
        })
    }
}

impl Replacement {
    fn hold_back(&self) -> HoldBack {
        HoldBack::Bytes(match self {
            Self::Words(words) => words.search.hold_back(),
            Self::Pattern(pattern) => pattern.search.hold_back(),
        })
    }

    fn replace(&mut self, text: &mut PendingText<'_>) {
        match self {
            Self::Words(words) => words.replace(text),
            Self::Pattern(pattern) => pattern.replace(text),
        }
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
        Ok(self.edit(next.next_stream(request).await?))
    }
}

/// A pattern with its replacement.
#[derive(Debug, Clone)]
struct PatternReplacement {
    search: PatternSearch,
    replacement: Arc<str>,
}

impl PatternReplacement {
    /// Replaces the decided matches in a text. Only a possible beginning of a match is left.
    fn replace(&mut self, text: &mut PendingText<'_>) {
        loop {
            match self.search.find((&*text).into()) {
                Found::Match(place) => {
                    self.search.forget(text.get(..place.end).unwrap_or_default());
                    text.pass(place.start);
                    text.replace(place.len(), &self.replacement);
                }
                Found::Nothing(until) => {
                    self.search.forget(text.get(..until).unwrap_or_default());
                    return text.pass(until);
                }
            }
        }
    }
}

/// Words with their replacements.
#[derive(Debug)]
struct WordReplacement {
    search: Words,
    /// The replacement of each word.
    replacements: Vec<String>,
}

impl WordReplacement {
    fn new(words: impl Iterator<Item = (String, String)>, case: LetterCase) -> Self {
        let (words, replacements): (Vec<_>, Vec<_>) = words.unzip();
        Self { search: Words::new(words.iter().map(String::as_str), case), replacements }
    }

    /// Replaces the words in a text. Only a possible beginning of a word is left.
    fn replace(&self, text: &mut PendingText<'_>) {
        loop {
            match self.search.find((&*text).into()) {
                Found::Match(found) => {
                    let replacement = self.replacements.get(found.word).map(String::as_str);
                    text.pass(found.place.start);
                    text.replace(found.place.len(), replacement.unwrap_or_default());
                }
                Found::Nothing(until) => return text.pass(until),
            }
        }
    }
}
