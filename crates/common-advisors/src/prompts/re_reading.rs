//! `ReReading`: sends each question twice.

use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, ChatRequest, ChunkStream, Phase, Placement, Result, StreamAdvisor, async_trait,
};

/// Sends each question of the user twice, so that the model reads it again (Re2, <https://arxiv.org/abs/2309.06275>).
///
/// Memory keeps the question as the user wrote it. All user messages of the request are sent so, since a changed
/// beginning would cost the provider's cache.
///
/// Its phase is [`Phase::ModelCall`].
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use advisor_testkit::{Answer, ScriptedModel};
/// use common_advisors::ReReading;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let model = ScriptedModel::new([Answer::from_text("Seven.")]);
/// let client = ChatClient::builder(model.clone()).advisor(ReReading).build()?;
/// client.prompt().user("How many?").call().await?;
/// let sent = model.prompts()[0].messages.clone();
/// assert_eq!(sent.last().unwrap().text(), "How many?\nRead the question again: How many?");
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::exhaustive_structs, reason = "it has no settings")]
pub struct ReReading;

impl AdvisorInfo for ReReading {
    fn name(&self) -> &str {
        "re-reading"
    }

    fn placement(&self) -> Placement {
        Placement::new(Phase::ModelCall)
    }
}

#[async_trait]
impl StreamAdvisor for ReReading {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let twice = |text: &str| format!("{text}\nRead the question again: {text}");
        next.next_stream(request.map_user_text(twice)).await
    }
}
