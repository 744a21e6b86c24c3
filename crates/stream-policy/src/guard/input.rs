//! `InputGuard`: answers in place of the model, outside memory.

use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, ChatRequest, ChatResponse, ChunkStream, FinishReason, Message, Phase,
    Placement, Result, Role, StreamAdvisor, async_trait,
};

use super::Guard;

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
/// use stream_policy::Guard;
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
    pub(super) fn new(guard: Guard) -> Self {
        Self { guard }
    }

    fn refuses(&self, request: &ChatRequest) -> bool {
        // Results may stand on both sides of the user's words.
        let input = request.messages.iter_back().take_while(|message| message.role() != Role::Assistant);
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
        Placement::new(Phase::Turn).outside_memory()
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
