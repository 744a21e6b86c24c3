use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use message_aggregator::{ChatResponse, Chunk};
use tracing::Instrument;

use crate::builder::ChainBuilder;
use crate::{
    AdvisorRole, ChatModel, ChatRequest, ChunkStream, Error, ErrorKind, Phase, Plan, Result, StreamAdvisor,
    TurnStream, spans,
};

/// The whole chain or its rest, from here to the model: immutable, cheap to clone, callable any number
/// of times, also at once.
///
/// # Example
/// ```
/// use advisor_core::{AdvisorChain, ChatModel, ChatRequest, ChatResponse, ChunkStream, FinishReason, Message, Result, async_trait};
///
/// struct Yes;
/// #[async_trait]
/// impl ChatModel for Yes {
///     async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
///         Ok(ChunkStream::answer(ChatResponse::new(request.round, Message::assistant("Yes."), FinishReason::Stop)))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let chain = AdvisorChain::builder(Yes).build()?;
/// let response = chain.next_call(ChatRequest::new(Message::user("Is it?"))).await?;
/// assert_eq!(response.text(), "Yes.");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct AdvisorChain {
    links: Arc<[Link]>,
    position: usize,
    model: Arc<dyn ChatModel>,
}

#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) advisor: Arc<dyn StreamAdvisor>,
    pub(crate) phase: Phase,
    pub(crate) role: AdvisorRole,
    /// It gives way to another of its role.
    pub(crate) fallback: bool,
}

impl AdvisorChain {
    /// Begins a chain around `model`.
    pub fn builder(model: impl ChatModel) -> ChainBuilder {
        ChainBuilder::new(Arc::new(model))
    }

    pub(crate) fn new(links: Vec<Link>, model: Arc<dyn ChatModel>) -> Self {
        Self { links: links.into(), position: 0, model }
    }

    /// Asks this chain: the next advisor, or the model if there is none.
    ///
    /// # Errors
    /// Of the advisors and the model, before anything was shown.
    pub fn next_stream(
        &self,
        request: ChatRequest,
    ) -> impl Future<Output = Result<ChunkStream>> + Send + use<> {
        let turn = Arc::clone(&request.turn);
        // The request goes into the boxed future at once: kept beside it, in each layer, it would be half of what a stream needs.
        let asked = match self.links.get(self.position) {
            Some(link) => Arc::clone(&link.advisor).advise_stream(request, self.rest()),
            None => ask(Arc::clone(&self.model), request).boxed(),
        };
        async move {
            turn.go_on();
            asked.await
        }
    }

    /// Asks this chain and waits for the end of the answer.
    ///
    /// # Errors
    /// Those of [`AdvisorChain::next_stream`] and of the stream.
    pub async fn next_call(&self, request: ChatRequest) -> Result<ChatResponse> {
        to_completion(self.next_stream(request).await?).await
    }

    /// A turn of this chain. Nothing happens before the stream is polled.
    pub fn stream(&self, request: ChatRequest) -> TurnStream {
        TurnStream::new(self.clone(), request)
    }

    /// Whether an advisor for which `is` says yes stands in this rest of the chain.
    #[must_use]
    pub fn contains(&self, is: impl Fn(AdvisorRole) -> bool) -> bool {
        self.remaining().iter().any(|link| is(link.role))
    }

    /// Tells every advisor of this rest of the chain that a tool loop begins with `request`; see
    /// [`AdvisorInfo::join`](crate::AdvisorInfo::join). Whoever writes a tool loop calls it first, and again
    /// if something changes the request before the first round.
    ///
    /// # Errors
    /// That of the first advisor that cannot take part.
    pub fn join(&self, request: &ChatRequest) -> Result<()> {
        self.remaining().iter().try_for_each(|link| link.advisor.join(request))
    }

    /// How this chain is put together: order, phases, roles, who sees what, what is remembered.
    #[must_use]
    pub fn explain(&self) -> Plan {
        Plan::new(self.remaining())
    }

    /// The same advisors and model as a builder, to add more.
    pub fn to_builder(&self) -> ChainBuilder {
        ChainBuilder::resume(self.remaining().to_vec(), Arc::clone(&self.model))
    }

    fn remaining(&self) -> &[Link] {
        self.links.get(self.position..).unwrap_or_default()
    }

    fn rest(&self) -> Self {
        Self { links: Arc::clone(&self.links), position: self.position + 1, model: Arc::clone(&self.model) }
    }
}

async fn ask(model: Arc<dyn ChatModel>, mut request: ChatRequest) -> Result<ChunkStream> {
    request.round = request.turn.next_round();
    request.turn.offer_tools(request.round, request.tools.clone());
    let span = spans::model_call(model.name(), &request);
    let turn = Arc::clone(&request.turn);
    let stream = model.stream(request).instrument(span.clone()).await?;
    Ok(stream.in_span(span).on_completed(move |response| async move {
        turn.note_answer(response.message());
        Ok(response)
    }))
}

/// Reads a stream to its end and gives the response.
pub(crate) async fn to_completion(
    stream: impl futures::Stream<Item = Result<Chunk>> + Unpin,
) -> Result<ChatResponse> {
    use futures::StreamExt;
    let mut stream = stream;
    while let Some(chunk) = stream.next().await {
        if let Chunk::Completed(response) = chunk? {
            return Ok(response);
        }
    }
    Err(Error::new(ErrorKind::Unfinished, "a stream of chunks was read after its end"))
}

impl fmt::Debug for AdvisorChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.remaining().iter().map(|link| link.advisor.name())).finish()
    }
}
