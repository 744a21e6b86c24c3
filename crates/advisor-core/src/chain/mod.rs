//! `AdvisorChain`: `next_stream`, `next_call`, `on_loop_start`, `validate_tools`, `explain`; the chain's end calls
//! the model.

pub(crate) mod advisor;
pub(crate) mod decisions;
pub(crate) mod functions;
mod order;
pub(crate) mod placement;

use std::fmt;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;

use futures::future::{Either, select};
use futures::{FutureExt, Stream, TryStreamExt};
use message_aggregator::{ChatResponse, Chunk};
use tracing::Instrument;

use crate::chain::placement::{Plan, is_memory, is_tool_loop};
use crate::{
    CallRunner, ChatModel, ChatRequest, ChunkStream, Error, ErrorKind, PendingCalls, Placement, Result,
    SchemaSupport, StreamAdvisor, ToolDefinition, ToolSet, spans,
};

/// The whole chain or its rest down to the model: immutable and cheap to clone. It can be called any number of
/// times, also concurrently.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, ChatModel, ChatRequest, ChatResponse, ChunkStream, FinishReason, Message, Result, async_trait};
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
/// let client = ChatClient::builder(Yes).build()?;
/// let response = client.chain().next_call(ChatRequest::new(Message::user("Is it?"))).await?;
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
    pub(crate) placement: Placement,
    /// Whether another advisor of the same role replaces it.
    pub(crate) fallback: bool,
}

impl Link {
    /// Places an advisor where it says.
    pub(crate) fn new(advisor: Arc<dyn StreamAdvisor>) -> Self {
        Self { placement: advisor.placement(), advisor, fallback: false }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.advisor.name(), f)
    }
}

impl AdvisorChain {
    /// Orders and checks the advisors, and puts them around `model`.
    pub(crate) fn new(links: Vec<Link>, model: Arc<dyn ChatModel>) -> Result<Self> {
        Ok(Self { links: order::arranged(links)?.into(), position: 0, model })
    }

    /// Calls this chain: the next advisor, or the model if none is left.
    ///
    /// # Errors
    /// Those of the advisors and the model, before anything was shown.
    pub fn next_stream(
        &self,
        request: ChatRequest,
    ) -> impl Future<Output = Result<ChunkStream>> + Send + use<> {
        let turn = Arc::clone(&request.turn);
        // Moves the request into the boxed future at once. Kept beside it in each layer, it would be half of a
        // stream's size.
        let asked = match self.links.get(self.position) {
            Some(link) if is_tool_loop(&link.placement) && turn.resolves_tools() => {
                self.rest().inside_loop(link.advisor.call_runner(), request).boxed()
            }
            Some(link) => Arc::clone(&link.advisor).advise_stream(request, self.rest()),
            None => self.ask(request).boxed(),
        };
        async move {
            turn.resume();
            let mut stream = asked.await?;
            stream.belongs_to(turn);
            Ok(stream)
        }
    }

    /// Calls this chain, which is inside a tool loop, with the request of the loop's first round.
    async fn inside_loop(
        self,
        tool_loop: Option<Arc<dyn CallRunner>>,
        request: ChatRequest,
    ) -> Result<ChunkStream> {
        let request = match tool_loop {
            Some(tool_loop) => tool_loop.first_request(request).await?,
            None => request,
        };
        self.next_stream(request).await
    }

    /// Returns the tools that `request` has where it arrives beside the model, or where an advisor answers it. No model is
    /// asked: the request is dropped there. A tool loop in this chain is passed by.
    ///
    /// # Errors
    /// Those of the advisors, and of kind [`Configuration`](ErrorKind::Configuration) if one answers without the request.
    pub(crate) async fn resolve_tools(&self, request: ChatRequest) -> Result<ToolSet> {
        let (arrived, _pass) = request.turn.begin_resolving();
        let pass = async {
            let mut stream = self.next_stream(request).await?;
            // Some advisors ask the rest of the chain only when their stream is read.
            stream.try_next().await
        };
        match select(pin!(pass), arrived).await {
            Either::Right((Ok(tools), _)) => Ok(tools),
            Either::Right((Err(_), pass)) => Err(pass.await.err().unwrap_or_else(unresolved)),
            Either::Left((end, mut arrived)) => {
                arrived.try_recv().map_err(|_| end.err().unwrap_or_else(unresolved))
            }
        }
    }

    /// Calls this chain and waits for the end of the answer.
    ///
    /// # Errors
    /// Those of [`AdvisorChain::next_stream`] and of the stream.
    pub async fn next_call(&self, request: ChatRequest) -> Result<ChatResponse> {
        to_completion(self.next_stream(request).await?).await
    }

    /// Returns the same advisors around another model: an advisor calls it with `next.with_model(model)`.
    ///
    /// Rounds, offered tools and spans work as for the chain's own model. [`FallbackModel`](crate::FallbackModel)
    /// switches models after errors.
    #[must_use]
    pub fn with_model(&self, model: impl ChatModel) -> Self {
        Self { model: Arc::new(model), ..self.clone() }
    }

    /// Returns how much of the response format this chain's model enforces.
    #[must_use]
    pub fn schema_support(&self) -> SchemaSupport {
        self.model.schema_support()
    }

    /// Checks whether this rest of the chain has a memory.
    #[must_use]
    pub fn has_memory(&self) -> bool {
        self.remaining().iter().any(|link| is_memory(&link.placement))
    }

    /// Calls [`AdvisorInfo::on_loop_start`](crate::AdvisorInfo::on_loop_start) of every advisor in this rest of
    /// the chain. A tool loop calls it first, and again if something changes the request before the first round.
    ///
    /// # Errors
    /// That of the first advisor that cannot take part.
    pub fn on_loop_start(&self, request: &ChatRequest) -> Result<()> {
        // Without a root, the turn begins here.
        request.turn.begin_with(&request.messages);
        self.remaining().iter().try_for_each(|link| link.advisor.on_loop_start(request))
    }

    /// Checks tools before they are offered: their definitions, then with `validate_tools` of every advisor.
    ///
    /// It covers the whole chain, not only this rest. It runs before each request; advisors may cache the result
    /// with the set.
    ///
    /// # Errors
    /// Of kind [`Configuration`](ErrorKind::Configuration), with the name of the tool and the remedy.
    pub fn validate_tools(&self, tools: &ToolSet) -> Result<()> {
        if tools.is_empty() {
            return Ok(());
        }
        tools.definitions().try_for_each(ToolDefinition::validate)?;
        self.links.iter().try_for_each(|link| link.advisor.validate_tools(tools))
    }

    /// Returns the calls that conversations wait for, of the first memory that knows them.
    pub(crate) fn pending_calls(&self) -> Option<&dyn PendingCalls> {
        self.links.iter().find_map(|link| link.advisor.pending_calls())
    }

    /// Returns the part of the tool loop that runs approved calls.
    pub(crate) fn call_runner(&self) -> Option<Arc<dyn CallRunner>> {
        self.links.iter().find_map(|link| link.advisor.call_runner())
    }

    /// Returns how this chain is put together: order, phases, roles, visibility of rounds, and remembered
    /// messages.
    pub(crate) fn explain(&self) -> Plan {
        Plan::new(self.remaining())
    }

    /// Returns the advisors and the model, to build another chain of them.
    pub(crate) fn parts(&self) -> (Vec<Link>, Arc<dyn ChatModel>) {
        (self.remaining().to_vec(), Arc::clone(&self.model))
    }

    /// Validates the tools and asks the model. For calls of the model, this alone takes the number of the round and notes the
    /// offered tools.
    fn ask(&self, mut request: ChatRequest) -> impl Future<Output = Result<ChunkStream>> + Send + use<> {
        let valid = self.validate_tools(&request.tools);
        let model = Arc::clone(&self.model);
        async move {
            valid?;
            request = request.with_joined_context();
            if request.turn.note_arrival(&request.tools) {
                return pending().await;
            }
            request.round = request.turn.next_round();
            request.turn.offer_tools(request.round, request.tools.clone());
            let span = spans::model_call(&*model, &request);
            let turn = Arc::clone(&request.turn);
            let mut answer = spans::Answer::new(&span);
            // Calls the model itself, since the `Arc` would box the future once more. The call runs in its span,
            // with its synchronous part.
            let asked = async { (*model).stream(request).await }.instrument(span.clone()).await;
            let stream = asked.inspect_err(|error| spans::note_error(&span, error))?;
            let stream = stream.in_span_with(span, move |span, item| answer.note(span, item));
            Ok(stream.on_completed(move |response| async move {
                turn.note_answer(response.message());
                Ok(response)
            }))
        }
    }

    fn remaining(&self) -> &[Link] {
        self.links.get(self.position..).unwrap_or_default()
    }

    fn rest(&self) -> Self {
        Self { links: Arc::clone(&self.links), position: self.position + 1, model: Arc::clone(&self.model) }
    }
}

/// Returns the error of a pass that ended before it found the tools.
fn unresolved() -> Error {
    Error::configuration(
        "an advisor inside memory answers without the model, so the tools for the approved calls are not known; let it \
         answer with `ChatRequest::answer`, or place it outside memory",
    )
}

/// Reads a stream to its end and returns the response.
pub(crate) async fn to_completion(
    mut stream: impl Stream<Item = Result<Chunk>> + Unpin,
) -> Result<ChatResponse> {
    while let Some(chunk) = stream.try_next().await? {
        if let Chunk::Completed(response) = chunk {
            return Ok(response);
        }
    }
    Err(Error::new(ErrorKind::Unfinished, "a stream of chunks was read after its end"))
}

impl fmt::Debug for AdvisorChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.remaining()).finish()
    }
}
