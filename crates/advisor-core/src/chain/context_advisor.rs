//! `context_fn` and `ContextFn`: an advisor that adds context once per turn, sent with the user's message and never
//! stored.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use message_aggregator::Text;

use crate::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChunkStream, OncePerTurn, Placement, Result,
    StreamAdvisor,
};

/// Creates an advisor that adds context to a turn, such as retrieved documents or facts about the user.
///
/// `context` is called once per turn. It receives the request and returns the text, empty for none. Every request
/// of the turn carries the text at the beginning of the user's message ([`ChatRequest::with_context`]), so what was
/// sent before that message stays as it was, and a provider reads it from its cache. Memory stores the message as the
/// user wrote it: the next turn has it without the text. This holds in every phase, with one exception: a turn that is
/// resumed with decisions or results alone has no message of the user in front of memory. `context` finds none there, and
/// its text goes with the instructions. Behind memory, such as in [`Phase::Round`](crate::Phase::Round), the stored message is there.
///
/// [`in_system`](ContextFn::in_system) sends the text with the instructions.
///
/// # Errors
/// An error of `context` ends the turn before the model is asked. The next request of the turn, if any, calls it
/// again.
///
/// # Example
/// ```
/// use advisor_core::{ChatRequest, context_fn};
///
/// async fn search(_question: &str) -> Vec<String> {
///     vec!["Our shop opens at nine.".into()]
/// }
///
/// let documents = context_fn("documents", |request: ChatRequest| async move {
///     let question = request.last_user().map(|message| message.text()).unwrap_or_default();
///     Ok(format!("Answer from these documents:\n{}", search(&question).await.join("\n")))
/// });
/// ```
pub fn context_fn<F, Fut, T>(name: impl Into<String>, context: F) -> ContextFn<F>
where
    F: Fn(ChatRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T>> + Send + 'static,
    T: Into<Text>,
{
    let placement = Placement::default().with_role(AdvisorRole::Context);
    ContextFn { name: name.into(), placement, context, text: OncePerTurn::new(), in_system: false }
}

/// The advisor that [`context_fn`] creates.
#[derive(Clone)]
pub struct ContextFn<F> {
    name: String,
    placement: Placement,
    context: F,
    text: OncePerTurn<Text>,
    in_system: bool,
}

impl<F> ContextFn<F> {
    /// Sends the text behind the instructions of the request, as a part of them. The model gives it their rank. A text
    /// that changes from turn to turn changes the beginning of each request, so a provider's cache of the conversation
    /// is lost with every change.
    #[must_use]
    pub fn in_system(self) -> Self {
        Self { in_system: true, ..self }
    }
}

impl<F: Send + Sync + 'static> AdvisorInfo for ContextFn<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn placement(&self) -> Placement {
        self.placement
    }
}

#[async_trait]
impl<F, Fut, T> StreamAdvisor for ContextFn<F>
where
    F: Fn(ChatRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T>> + Send + 'static,
    T: Into<Text>,
{
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let find = async { Ok((self.context)(request.clone()).await?.into()) };
        let text = self.text.get_or_try_init(&request.turn, find).await?;
        let request = if self.in_system { request.with_system(text) } else { request.with_context(text) };
        next.next_stream(request).await
    }
}

impl<F> fmt::Debug for ContextFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextFn").field("name", &self.name).finish_non_exhaustive()
    }
}
