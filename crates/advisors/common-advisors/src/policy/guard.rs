//! `Guard`: what it matches, its reply, and the advisors made of it: `InputGuard` and `OutputGuard`.

use std::fmt;
use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, Block, BlockKind, ChatRequest, ChatResponse, ChunkStream,
    FinishReason, HoldBack, Message, PendingText, Phase, Placement, Result, Role, StreamAdvisor, Text,
    async_trait,
};

use crate::policy::search::words::LetterCase;
use crate::policy::search::{Found, Searched, TextSearch};

/// A guard against texts: what it matches, and its reply.
///
/// [`on_input`](Self::on_input) is the advisor for the user's messages, [`on_output`](Self::on_output) that for
/// answers. To change a text and go on, take [`ReplaceText`](crate::policy::ReplaceText).
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, FinishReason};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use common_advisors::policy::{Guard, LetterCase};
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
/// assert_eq!(ended.finish.reason, FinishReason::ContentFilter);
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
    /// Creates a guard against words. `case` says which letters match.
    ///
    /// Words are literal, and also match inside a longer word. Empty words are ignored.
    pub fn for_words<W: Into<String>>(words: impl IntoIterator<Item = W>, case: LetterCase) -> Self {
        let mut words: Vec<String> = words.into_iter().map(Into::into).collect();
        // The shortest one first: a word ends the answer without waiting for a longer one that begins with it.
        words.sort_by_key(|word| word.chars().count());
        Self::new(Matcher::Search(TextSearch::for_words(&words, case)))
    }

    /// Creates a guard against the matches of a regular expression, in the syntax of the crate `regex`.
    ///
    /// Matches must have a longest length, as in [`ReplaceText::for_pattern`](crate::policy::ReplaceText::for_pattern).
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) for a pattern that is invalid, matches an empty text, or can match more than 64 KiB.
    pub fn for_pattern(pattern: &str) -> Result<Self> {
        Ok(Self::new(Matcher::Search(TextSearch::for_pattern(pattern)?)))
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
        InputGuard { guard: self }
    }

    /// Returns the advisor that checks answers while they stream.
    pub fn on_output(self) -> OutputGuard {
        OutputGuard { guard: self, kinds: vec![BlockKind::Text, BlockKind::Reasoning, BlockKind::Refusal] }
    }

    /// Returns the reply as a block, unless it is empty.
    fn reply(&self) -> Option<Block> {
        (!self.reply.is_empty()).then(|| Block::text(self.reply.as_str()))
    }
}

/// The texts that a guard matches, and the place of the search in one block.
#[derive(Clone)]
enum Matcher {
    Search(TextSearch),
    /// A check of whole texts.
    Texts(Arc<dyn Fn(&str) -> bool + Send + Sync>),
}

impl Matcher {
    fn hold_back(&self) -> HoldBack {
        match self {
            Self::Search(search) => search.hold_back(),
            // Not `Block`: blocks of kinds that are not checked pass at once.
            Self::Texts(_) => HoldBack::Bytes(usize::MAX),
        }
    }

    /// Returns the byte at which the first match begins.
    ///
    /// Without a match, the text before the returned byte is searched no more: the next one begins with what follows.
    fn find(&mut self, text: Searched<'_>) -> Found<usize> {
        match self {
            Self::Search(search) => search.find_start(text),
            Self::Texts(is_match) => match text.is_at_end() {
                false => Found::Nothing(0),
                true if is_match(&text) => Found::Match(0),
                true => Found::Nothing(text.len()),
            },
        }
    }

    /// Checks whether a whole text has a match.
    fn matches(&self, text: &str) -> bool {
        matches!(self.clone().find(Searched::whole(text)), Found::Match(_))
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Search(search) => f.debug_tuple("Search").field(search).finish(),
            Self::Texts(_) => f.debug_tuple("Texts").finish_non_exhaustive(),
        }
    }
}

/// Answers in place of the model if the user's input matches. [`Guard::on_input`] creates it.
///
/// It checks the texts of the user's messages after the last answer, each message alone. Earlier messages, system
/// messages, media and results of tools are not checked. User messages that advisors further outside add, such as
/// documents, are checked, too; add the guard before them if it should not see them.
///
/// Its position is [`Phase::Turn`], outside memory, which stores nothing of such a turn: neither the input nor the
/// reply. The chain refuses another place. The answer ends with [`FinishReason::ContentFilter`].
///
/// # Ordering
/// The check comes before all advisors further inside, so no memory, model or tool is asked.
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use advisor_testkit::{Answer, ScriptedModel};
/// use common_advisors::policy::Guard;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let model = ScriptedModel::new([Answer::from_text("this is never asked")]);
/// let short = Guard::for_texts(|text| text.chars().count() > 1000).with_reply("Please be brief.");
/// let client = ChatClient::builder(model.clone()).advisor(short.on_input()).build()?;
/// let answer = client.prompt().user("why? ".repeat(500)).call().await?;
/// assert_eq!((answer.text().as_str(), model.calls()), ("Please be brief.", 0));
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct InputGuard {
    guard: Guard,
}

impl InputGuard {
    fn refuses(&self, request: &ChatRequest) -> bool {
        // Results may stand on both sides of the user's words.
        let input = request.messages.iter().rev().take_while(|message| message.role() != Role::Assistant);
        input
            .filter(|message| message.role() == Role::User)
            .any(|message| self.guard.matcher.matches(&message.text()))
    }
}

impl AdvisorInfo for InputGuard {
    fn name(&self) -> &str {
        self.guard.name.as_deref().unwrap_or("input-guard")
    }

    fn placement(&self) -> Placement {
        Placement { phase: Phase::Turn, role: AdvisorRole::OutsideMemory }
    }
}

#[async_trait]
impl StreamAdvisor for InputGuard {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        if self.refuses(&request) {
            let reply = Message::assistant_blocks(self.guard.reply().into_iter().collect());
            return Ok(request.answer(ChatResponse::new(0, reply, FinishReason::ContentFilter)));
        }
        next.next_stream(request).await
    }
}

/// Ends an answer where its text matches. [`Guard::on_output`] creates it.
///
/// Shows the text before the match, then the reply as a separate block. The answer ends with
/// [`FinishReason::ContentFilter`], so none of its calls runs. If a call was complete before the match, the tool loop
/// answers it as not started and closes the turn with its own text.
///
/// Text, reasoning and refusals are checked by default; arguments of calls are never. Each block is searched alone.
///
/// Its position is [`Phase::ModelCall`], inside memory, which stores the shown text and the reply. The chain refuses
/// another place. Of several policies, the one added last is nearest to the model and acts first.
///
/// # Ordering
/// It holds back only text that may begin a match. All other text is emitted in the poll in which it arrived (law S2).
/// The answer ends in the poll in which a match becomes certain, also if the match could become longer. A guard with a
/// closure ([`Guard::for_texts`]) holds back each checked block until its end.
///
/// At the end of the answer, the stream of the model is dropped, and so is the held-back text of other blocks. The
/// usage is that of the model so far.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, FinishReason};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use common_advisors::policy::{Guard, LetterCase};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let answer = Answer::new().text("Project Ze").text("phyr is late.").finish(FinishReason::Stop);
/// let guard = Guard::for_words(["zephyr"], LetterCase::Ignore).with_reply("[secret]").on_output();
/// let client = ChatClient::builder(ScriptedModel::new([answer])).advisor(guard).build()?;
/// assert_eq!(client.prompt().user("News?").call().await?.text(), "Project [secret]");
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct OutputGuard {
    guard: Guard,
    kinds: Vec<BlockKind>,
}

impl OutputGuard {
    /// Sets the kinds of blocks whose text is checked. Kinds without text have no effect.
    pub fn with_kinds(self, kinds: impl IntoIterator<Item = BlockKind>) -> Self {
        Self { kinds: kinds.into_iter().collect(), ..self }
    }
}

impl AdvisorInfo for OutputGuard {
    fn name(&self) -> &str {
        self.guard.name.as_deref().unwrap_or("output-guard")
    }

    fn placement(&self) -> Placement {
        Placement { phase: Phase::ModelCall, role: AdvisorRole::InsideMemory }
    }
}

#[async_trait]
impl StreamAdvisor for OutputGuard {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let (kinds, reply) = (self.kinds.clone(), self.guard.reply());
        let mut matcher = self.guard.matcher.clone();
        let stream = next.next_stream(request).await?;
        Ok(stream.edit_text(matcher.hold_back(), move |text: &mut PendingText<'_>| {
            if !kinds.contains(&text.kind) {
                return text.pass(text.len());
            }
            match matcher.find((&*text).into()) {
                Found::Nothing(until) => text.pass(until),
                Found::Match(start) => {
                    text.pass(start);
                    text.end_answer(FinishReason::ContentFilter, reply.clone());
                }
            }
        }))
    }
}
