//! The traits `AdvisorInfo`, `StreamAdvisor` and `Advisor`, and the blanket implementation from `Advisor` to
//! `StreamAdvisor`.

use std::any::type_name;
use std::sync::Arc;

use async_trait::async_trait;
use message_aggregator::ChatResponse;

use crate::{AdvisorChain, CallRunner, ChatRequest, ChunkStream, PendingCalls, Placement, Result, ToolSet};

/// Name, placement and hooks of an advisor, common to both advisor traits.
pub trait AdvisorInfo: Send + Sync + 'static {
    /// Returns the name for plans, traces and errors: the name of the type by default, without its path and its
    /// type parameters.
    fn name(&self) -> &str {
        let path = type_name::<Self>();
        let last = path.split_once('<').map_or(path, |(before, _)| before).rsplit("::").next();
        // The path of a type inside a function may have parameters before its name.
        if path.contains(">::") { path } else { last.unwrap_or(path) }
    }

    /// Returns the default placement: once per turn, outside the tool loop. The code that adds the advisor can
    /// override it.
    fn placement(&self) -> Placement {
        Placement::default()
    }

    /// Runs before a tool loop outside this advisor begins with `request`.
    ///
    /// An advisor that records turns adds its [`TurnRecorder`](crate::TurnRecorder) here. The recorder then
    /// receives all messages that the loop makes final. These include rounds that an advisor between the two
    /// answers by itself. The chain may call it more than once in a turn; note in an extension of the turn that
    /// the recorder is added.
    ///
    /// # Errors
    /// If it cannot take part in this turn. No request is sent then.
    fn on_loop_start(&self, _request: &ChatRequest) -> Result<()> {
        Ok(())
    }

    /// Checks the tools that this advisor's chain is about to offer. An advisor that runs tools implements it.
    ///
    /// The chain calls it when a client is built, when a turn adds tools, and before each request. Cache the
    /// result with the set ([`ToolSet::wire_form`]). The chain has already checked names and the roots of schemas.
    ///
    /// # Errors
    /// If a tool cannot be run. No request is sent then.
    fn validate_tools(&self, _tools: &ToolSet) -> Result<()> {
        Ok(())
    }

    /// Returns the calls that conversations wait for, if this advisor is a memory that knows them and applies the
    /// [`Decisions`](crate::Decisions) of a turn.
    fn pending_calls(&self) -> Option<&dyn PendingCalls> {
        None
    }

    /// Returns the part that runs approved calls, if this advisor is a tool loop.
    fn call_runner(&self) -> Option<Arc<dyn CallRunner>> {
        None
    }
}

/// Advisor with full control over the rest of the chain.
///
/// It can change the request, observe, change or hold back chunks, or answer by itself. It can call the rest of
/// the chain again, and run asynchronous work when the answer is complete.
///
/// # Ordering
/// Work for the end of the answer goes into [`ChunkStream::on_completed`]. It runs after the work of all inner
/// advisors, and has finished before anyone outside learns that the answer is complete.
///
/// # Cancellation
/// Dropping the future or the stream drops everything inside it. Nothing is spawned.
///
/// # Errors
/// An error of the future means that nothing was shown. An error inside the stream ends it, and no work for the
/// end of the answer runs.
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use advisor_core::{
///     AdvisorChain, AdvisorInfo, ChatRequest, ChunkStream, Result, StreamAdvisor, async_trait,
/// };
///
/// /// Answers by itself where it must, without asking the model.
/// struct Guard;
///
/// impl AdvisorInfo for Guard {}
///
/// #[async_trait]
/// impl StreamAdvisor for Guard {
///     async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
///         if request.last_user().is_some_and(|message| message.text().contains("password")) {
///             return Ok(request.answer("I do not talk about passwords."));
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

/// Advisor with one step before the request and one after the answer. Every `Advisor` is a [`StreamAdvisor`], so a
/// type implements one of the two, never both.
///
/// # Ordering
/// `before` runs outer to inner, `after` inner to outer. In each round, `after` of every advisor inside the tool
/// loop completes first. Only then does a tool of that round start, and does any outer advisor or the caller see that
/// the round ended.
///
/// # Cancellation
/// If the turn is dropped, `after` does not run, or is dropped at an await point. [`Advisor::State`] is dropped in
/// any case.
///
/// # Errors
/// After an error of `before` no request is sent. After an error of `after` no tool runs, no further request is
/// sent, and the caller receives the error.
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
/// A type that implements both does not compile:
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
    /// State that `before` passes to `after`. It is also dropped on cancellation and errors.
    type State: Send + 'static;

    /// Runs before the rest of the chain is called; may change the request.
    async fn before(&self, request: ChatRequest) -> Result<(ChatRequest, Self::State)>;

    /// Runs when the answer is complete, before anyone outside learns of it. It only observes: shown text cannot
    /// be taken back. It passes results to other advisors through the request's turn.
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
