//! `OutputGuard`: ends an answer where its text matches.

use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, BlockKind, ChatRequest, ChunkStream, FinishReason, PendingText, Phase,
    Placement, Result, StreamAdvisor, async_trait,
};

use super::Guard;
use crate::search::Found;

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
/// use stream_policy::{Guard, LetterCase};
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
    pub(super) fn new(guard: Guard) -> Self {
        Self { guard, kinds: vec![BlockKind::Text, BlockKind::Reasoning, BlockKind::Refusal] }
    }

    /// Sets the kinds of blocks whose text is checked. Kinds without text have no effect.
    pub fn with_kinds(self, kinds: impl IntoIterator<Item = BlockKind>) -> Self {
        Self { kinds: kinds.into_iter().collect(), ..self }
    }

    /// Guards a stream outside a chain.
    pub fn edit(&self, stream: ChunkStream) -> ChunkStream {
        let (kinds, reply) = (self.kinds.clone(), self.guard.reply());
        let mut matcher = self.guard.matcher.clone();
        stream.edit_text(matcher.hold_back(), move |text: &mut PendingText<'_>| {
            if !kinds.contains(&text.kind()) {
                return text.pass_all();
            }
            match matcher.find((&*text).into()) {
                Found::Nothing(until) => text.pass(until),
                Found::Match(start) => {
                    text.pass(start);
                    text.end_answer(FinishReason::ContentFilter, reply.clone());
                }
            }
        })
    }
}

impl AdvisorInfo for OutputGuard {
    fn name(&self) -> &str {
        self.guard.name.as_deref().unwrap_or("output-guard")
    }

    fn placement(&self) -> Placement {
        Placement::new(Phase::ModelCall).inside_memory()
    }
}

#[async_trait]
impl StreamAdvisor for OutputGuard {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        Ok(self.edit(next.next_stream(request).await?))
    }
}
