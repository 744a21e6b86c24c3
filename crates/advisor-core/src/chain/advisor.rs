use std::sync::Arc;

use async_trait::async_trait;
use message_aggregator::ChatResponse;

use crate::{AdvisorChain, ChatRequest, ChunkStream, Placement, Result, ToolSet};

/// What every advisor says about itself.
pub trait AdvisorInfo: Send + Sync + 'static {
    /// A name for plans, traces and errors.
    fn name(&self) -> &str;

    /// Where it stands unless whoever adds it says otherwise: once per turn, outside the tool loop.
    fn placement(&self) -> Placement {
        Placement::default()
    }

    /// A tool loop outside this advisor is about to begin with `request`.
    ///
    /// Who records turns adds its [`TurnRecorder`](crate::TurnRecorder) here, so that it is told of all that
    /// the loop makes final, also of rounds that an advisor between the two answers by itself. It may be called
    /// more than once in a turn: an extension of the turn can say that the recorder is there.
    ///
    /// # Errors
    /// If it cannot take part in this turn. Nothing is asked then.
    fn on_loop_start(&self, _request: &ChatRequest) -> Result<()> {
        Ok(())
    }

    /// Checks tools that this advisor's chain is about to offer. An advisor that runs tools implements it.
    ///
    /// The chain calls it when a client is built, when a turn adds tools, and before each request. Keep the
    /// outcome with the set ([`ToolSet::wire_form`]). Names and the roots of schemas are checked already.
    ///
    /// # Errors
    /// If a tool cannot be run. Nothing is sent then.
    fn validate_tools(&self, _tools: &ToolSet) -> Result<()> {
        Ok(())
    }
}

/// Full control over the rest of the chain.
///
/// It can change the request, watch or change the chunks, hold some back, answer by itself, call the
/// rest of the chain again, and do asynchronous work when the answer is complete.
///
/// # Ordering
/// Work for the end of the answer goes into [`ChunkStream::on_completed`]: it has finished before
/// anyone outside learns that the answer is complete, and after everyone inside is done.
///
/// # Cancellation
/// Dropping the future or the stream drops everything inside it. Nothing is spawned.
///
/// # Errors
/// An error of the future means that nothing was shown. One inside the stream ends it; no work for the
/// end of the answer runs then.
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use advisor_core::{
///     AdvisorChain, AdvisorInfo, ChatRequest, ChatResponse, ChunkStream, FinishReason, Message, Result,
///     StreamAdvisor, async_trait,
/// };
///
/// /// Answers by itself where it must, without asking the model.
/// struct Guard;
///
/// impl AdvisorInfo for Guard {
///     fn name(&self) -> &str {
///         "guard"
///     }
/// }
///
/// #[async_trait]
/// impl StreamAdvisor for Guard {
///     async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
///         if request.last_user().is_some_and(|message| message.text().contains("password")) {
///             let refusal = Message::assistant("I do not talk about passwords.");
///             return Ok(request.answer(ChatResponse::new(0, refusal, FinishReason::Stop)));
///         }
///         next.next_stream(request).await
///     }
/// }
/// ```
#[async_trait]
pub trait StreamAdvisor: AdvisorInfo {
    /// Answers the request, usually by asking `next`.
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream>;
}

/// The common case: something before, something after. Every `Advisor` is a [`StreamAdvisor`], so a type
/// implements one of the two, never both.
///
/// # Ordering
/// `before` runs outer to inner, `after` inner to outer. `after` of every advisor inside the tool loop
/// has completed for a round before a tool of that round starts and before anyone outside sees that
/// the round ended.
///
/// # Cancellation
/// If the turn is dropped, `after` does not run, or is dropped at an await point; [`Advisor::State`] is
/// dropped in any case.
///
/// # Errors
/// An error of `before` means that nothing is asked. After an error of `after` no tool runs, nothing
/// more is asked and the error is delivered.
///
/// # Example
/// ```
/// use advisor_core::{Advisor, AdvisorInfo, ChatRequest, ChatResponse, Result, async_trait};
/// use std::time::Instant;
///
/// struct Stopwatch;
///
/// impl AdvisorInfo for Stopwatch {
///     fn name(&self) -> &str {
///         "stopwatch"
///     }
/// }
///
/// #[async_trait]
/// impl Advisor for Stopwatch {
///     type State = Instant;
///     async fn before(&self, request: ChatRequest) -> Result<(ChatRequest, Instant)> {
///         Ok((request, Instant::now()))
///     }
///     async fn after(&self, started: Instant, response: &ChatResponse) -> Result<()> {
///         let _took = (response.round(), started.elapsed());
///         Ok(())
///     }
/// }
/// ```
///
/// Both at once do not compile:
/// ```compile_fail,E0119
/// # use std::sync::Arc;
/// # use advisor_core::*;
/// # struct Both;
/// # impl AdvisorInfo for Both {
/// #     fn name(&self) -> &str { "both" }
/// # }
/// #[async_trait]
/// impl Advisor for Both {
///     // …
/// #   type State = ();
/// #   async fn before(&self, request: ChatRequest) -> Result<(ChatRequest, ())> { Ok((request, ())) }
/// #   async fn after(&self, _: (), _: &ChatResponse) -> Result<()> { Ok(()) }
/// }
///
/// #[async_trait]
/// impl StreamAdvisor for Both {
///     // …
/// #   async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
/// #       next.next_stream(request).await
/// #   }
/// }
/// ```
#[async_trait]
pub trait Advisor: AdvisorInfo {
    /// What `before` remembers for `after`. Its `Drop` sees cancellation and errors.
    type State: Send + 'static;

    /// Before the rest of the chain is asked; may change the request.
    async fn before(&self, request: ChatRequest) -> Result<(ChatRequest, Self::State)>;

    /// After the answer is complete, before anyone outside learns of it. It only observes: shown text
    /// cannot be taken back. What it learns for others goes into the request's turn.
    async fn after(&self, state: Self::State, response: &ChatResponse) -> Result<()>;
}

#[async_trait]
impl<A: Advisor> StreamAdvisor for A {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let (request, state) = self.before(request).await?;
        let stream = next.next_stream(request).await?;
        Ok(stream.on_completed(move |response| async move {
            self.after(state, &response).await?;
            Ok(response)
        }))
    }
}
