//! Advisors made of a closure: `from_fn`, `context_fn` and `tools_fn`.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use message_aggregator::Text;

use crate::{
    AdvisorChain, AdvisorInfo, ChatRequest, ChunkStream, OncePerTurn, Phase, Placement, Result,
    StreamAdvisor, ToolSet,
};

/// Creates an advisor from a closure; see [`StreamAdvisor`] for its contract.
///
/// # Example
/// ```
/// use advisor_core::{AdvisorChain, ChatRequest, from_fn};
///
/// let polite = from_fn("polite", |request: ChatRequest, next: AdvisorChain| async move {
///     next.next_stream(request.with_system("Be polite.")).await
/// });
/// ```
pub fn from_fn<F, Fut>(name: impl Into<String>, advise: F) -> FromFn<F>
where
    F: Fn(ChatRequest, AdvisorChain) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ChunkStream>> + Send + 'static,
{
    FromFn { name: name.into(), placement: Placement::default(), advise }
}

/// The advisor that [`from_fn`] creates.
#[derive(Clone)]
pub struct FromFn<F> {
    name: String,
    placement: Placement,
    advise: F,
}

impl<F> FromFn<F> {
    /// Sets the placement.
    #[must_use]
    pub fn with_placement(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }
}

impl<F: Send + Sync + 'static> AdvisorInfo for FromFn<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn placement(&self) -> Placement {
        self.placement
    }
}

#[async_trait]
impl<F, Fut> StreamAdvisor for FromFn<F>
where
    F: Fn(ChatRequest, AdvisorChain) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ChunkStream>> + Send + 'static,
{
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        (self.advise)(request, next).await
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFn").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Creates an advisor that adds context to a turn, such as retrieved documents or facts about the user.
///
/// `context` is called once per turn. It receives the request and returns the text, empty for none. Every request
/// of the turn carries the text at the beginning of the user's message ([`ChatRequest::with_context`]), so what was
/// sent before that message stays as it was, and a provider reads it from its cache. Memory stores the message as the
/// user wrote it: the next turn has it without the text. This holds in every phase, with one exception: a turn that is
/// resumed with decisions or results alone has no message of the user in front of memory. `context` finds none there, and
/// its text goes with the instructions. Behind memory, such as in [`Phase::Round`](crate::Phase::Round), the stored message is there.
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
pub fn context_fn<F, Fut, T>(name: impl Into<String>, context: F) -> impl StreamAdvisor + Clone
where
    F: Fn(ChatRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T>> + Send + 'static,
    T: Into<Text>,
{
    let (context, text) = (Arc::new(context), OncePerTurn::<Text>::default());
    from_fn(name, move |request: ChatRequest, next: AdvisorChain| {
        let (context, text) = (Arc::clone(&context), text.clone());
        async move {
            let find = async { Ok(context(request.clone()).await?.into()) };
            let text = text.get_or_try_init(&request.turn, find).await?;
            next.next_stream(request.with_context(text)).await
        }
    })
}

/// Creates an advisor that adds tools to each request. Examples are those that a user may use, and those of a server
/// that change while it runs.
///
/// `tools` receives the request and returns the tools. It is called once per round. If it returns clones of one set, the
/// serialised form of the tools is kept, too. To limit the time of slow sources, keep their tools and refresh them beside
/// the turn.
///
/// Its phase is [`Phase::Round`]; [`advisor_in`](crate::ChatClientBuilder::advisor_in) adds it in another one.
///
/// # Errors
/// An error of `tools` ends the turn before the model is asked. So does a tool with the name of one that the request has,
/// unless one of them is [foreign](crate::ToolDefinition::origin); the text names it.
///
/// # Example
/// ```
/// use advisor_core::{ChatRequest, ToolSet, tools_fn};
///
/// /// The tools of a tenant, from a registry of the application.
/// async fn tools_of(tenant: Option<&str>) -> advisor_core::Result<ToolSet> {
/// #   let _ = tenant;
///     Ok(ToolSet::new())
/// }
///
/// let tools = tools_fn("tenant-tools", |request: ChatRequest| async move {
///     tools_of(request.conversation.as_ref().map(|conversation| conversation.tenant())).await
/// });
/// ```
pub fn tools_fn<F, Fut>(name: impl Into<String>, tools: F) -> impl StreamAdvisor + Clone
where
    F: Fn(ChatRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolSet>> + Send + 'static,
{
    let (tools, last) = (Arc::new(tools), Arc::new(Mutex::new(None)));
    from_fn(name, move |request: ChatRequest, next: AdvisorChain| {
        let (tools, last) = (Arc::clone(&tools), Arc::clone(&last));
        async move {
            let added = tools(request.clone()).await?;
            let tools = match request.tools.is_empty() {
                true => added,
                false => merged(&last, request.tools.clone(), added)?,
            };
            next.next_stream(ChatRequest { tools, ..request }).await
        }
    })
    .with_placement(Placement::new(Phase::Round))
}

/// Merges two sets. Those that were merged last, and what became of them, are kept, so that a turn of many rounds
/// serialises its tools once.
fn merged(last: &Mutex<Option<[ToolSet; 3]>>, given: ToolSet, added: ToolSet) -> Result<ToolSet> {
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some([last_given, last_added, all]) = &*last
        && last_given.is_same(&given)
        && last_added.is_same(&added)
    {
        return Ok(all.clone());
    }
    let all = given.clone().merged(&added)?;
    *last = Some([given, added, all.clone()]);
    Ok(all)
}
