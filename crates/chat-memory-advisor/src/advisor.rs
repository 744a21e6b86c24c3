//! `ChatMemoryAdvisor`: the advisor, its settings, and what it tells of conversations.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, CallStart, ChatRequest, ChunkStream, ClientSideCall,
    ConversationKey, MessageList, PendingCalls, Phase, Placement, Result, StreamAdvisor, Turn, TurnId,
    async_trait,
};
use conversation_store::{ConversationStore, Snapshot};

use crate::conversation::unfinished::{end_last_turn, ends_running};
use crate::settings::Settings;
use crate::transcript::repair::{Pieces, Repair, whole_turns};
use crate::transcript::summary::{after, message_of};
use crate::turn::TurnMemory;
use crate::turn::client_side::{LastTurn, append_starts};
use crate::{OnBusy, OnOverflow, Summarizer, TokenCounter, Window};

/// An advisor that stores each message as it becomes final, and sends the stored conversation to the model.
///
/// By default it is inside the tool loop and sees every round. In [`Phase::Turn`](advisor_core::Phase::Turn) it is outside the loop and
/// stores the messages that the loop announces. Both store the same messages at the same points. Clones share
/// their conversations; two memories created separately do not know each other's running turns.
///
/// # Ordering
/// - The input of a turn is stored before the first request.
/// - An answer is stored before anything outside memory learns that it is complete, and so before its tools start.
/// - The starts of calls that must not run twice ([`Effect::AtMostOnce`](advisor_core::Effect)) are stored before
///   any tool of their round starts.
/// - Results are stored before the next request.
/// - The last answer and the end of the turn are stored together, before `Completed` is emitted.
///
/// The model is sent the request's system messages, the view of the conversation and the messages of the turn, and
/// nothing else. A message whose content the provider refused ([`InvalidInput`](advisor_core::ErrorKind::InvalidInput))
/// stays stored, and later turns are sent a text in its place that says so.
///
/// # Cancellation
/// Each append is atomic. A dropped turn is closed with the text that had been shown. That happens at once if the
/// caller gave a [`Spawner`](advisor_core::Spawner), otherwise with the next turn's input or by
/// [`ChatMemoryAdvisor::close_unfinished`]. After a crash, the next turn closes it without that text. Dropped
/// turns that wait to be closed are bounded to 64 MiB in all. A turn dropped beyond that is closed as after a
/// crash, so a server should give its clients a spawner.
///
/// # Errors
/// - [`ConversationBusy`](advisor_core::ErrorKind::ConversationBusy) while another turn of the conversation runs,
///   unless [`OnBusy`] says otherwise.
/// - [`Fenced`](advisor_core::ErrorKind::Fenced) if another turn took over the conversation.
/// - [`StoreConflict`](advisor_core::ErrorKind::StoreConflict) if another process changed the conversation.
/// - [`Store`](advisor_core::ErrorKind::Store) if the conversation cannot be read.
/// - [`NotPersisted`](advisor_core::ErrorKind::NotPersisted) if an append failed, with the
///   [`StoreError`](crate::StoreError) as its source.
/// - [`TurnIdReused`](advisor_core::ErrorKind::TurnIdReused) for a turn whose id was used for something else.
/// - [`Configuration`](advisor_core::ErrorKind::Configuration) for a turn without a conversation,
///   and for input with a result that no call waits for.
///
/// An operation of the store that takes longer than thirty seconds has failed. Time needs a tokio runtime that has it.
///
/// # The same turn again
/// A turn may be submitted again under its [id](advisor_core::TurnId), with the same input. It waits while an
/// earlier run is in progress, in this process or another. If the turn was answered, it gets the same answer.
/// A turn whose input alone is larger than the window may be refused for its size instead, if its answer is older than
/// what is read for that window.
/// Otherwise it continues where it stopped, without a second user message: the tool loop shows the stored rounds first,
/// and then the rest. Its tools do not run again: calls
/// without a result are answered [`OUTCOME_UNKNOWN`](crate::OUTCOME_UNKNOWN).
///
/// # Example
/// See the crate's example.
#[derive(Clone)]
pub struct ChatMemoryAdvisor {
    settings: Settings,
}

impl ChatMemoryAdvisor {
    /// Creates a memory that keeps conversations in `store` and sends them whole.
    pub fn new(store: impl ConversationStore) -> Self {
        Self { settings: Settings::new(Arc::new(store)) }
    }

    /// Limits the sent part of a conversation to `window`.
    #[must_use]
    pub fn with_window(mut self, window: Window) -> Self {
        self.settings.measure.window = window;
        self
    }

    /// Sets the policy for a turn that alone is larger than the window.
    #[must_use]
    pub fn with_on_overflow(mut self, on_overflow: OnOverflow) -> Self {
        self.settings.measure.on_overflow = on_overflow;
        self
    }

    /// Sets the policy for a turn that starts while another turn of its conversation is running.
    #[must_use]
    pub fn with_on_busy(mut self, on_busy: OnBusy) -> Self {
        self.settings.on_busy = on_busy;
        self
    }

    /// Sets how long a lease lasts: 30 seconds by default, at least one second. It applies to stores that grant
    /// [leases](conversation_store::Leases). A turn renews its lease after each third of that time.
    ///
    /// The conversation of a killed process is free again after this time. A turn whose stream is not polled for
    /// this long may lose its conversation to another process.
    #[must_use]
    pub fn with_lease_ttl(mut self, lease_ttl: Duration) -> Self {
        self.settings.lease_ttl = lease_ttl.max(Duration::from_secs(1));
        self
    }

    /// Sends running summaries in place of the oldest turns. Without a summarizer, stored summaries are not sent.
    #[must_use]
    pub fn with_summaries(mut self, summarizer: Summarizer) -> Self {
        self.settings.measure.summarizer = Some(summarizer);
        self
    }

    /// Sets the token counter. The default is an estimate: [`ApproximateTokens`](crate::ApproximateTokens).
    #[must_use]
    pub fn with_token_counter(mut self, counter: impl TokenCounter) -> Self {
        self.settings.measure.counter = Arc::new(counter);
        self
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the store of the conversations, to list, export or delete them.
    #[must_use]
    pub fn store(&self) -> &dyn ConversationStore {
        &*self.settings.store
    }

    /// Returns the messages that the next turn of a conversation would be sent before its own. They are the view
    /// of the stored conversation, repaired, with the text that dropped turns of this process had shown. Nothing
    /// is written.
    ///
    /// A turn that is running in this process has its messages so far, without an answer whose calls have no results
    /// yet. One of another process appears as if it had been interrupted now: the store does not tell whether it runs.
    /// A turn that waits for its caller appears as if
    /// the conversation had continued without the results. [`client_side_calls`](Self::client_side_calls) lists
    /// those calls, and [`ConversationStore::read`] returns the unchanged log.
    ///
    /// # Errors
    /// If the conversation cannot be loaded.
    pub async fn transcript(&self, key: &ConversationKey) -> Result<MessageList> {
        let Settings { store, registry, measure, .. } = &self.settings;
        let unfinished = registry.unfinished_in(key);
        // A turn may begin or end while the store is read.
        let before = registry.running_in(key);
        let see = |snapshot: Snapshot| {
            let running: Vec<_> = before.clone().into_iter().chain(registry.running_in(key)).collect();
            let (covered, unwritten) = (measure.is_covered(&snapshot), registry.unwritten_summary(key));
            let mut log = whole_turns(snapshot);
            let runs = ends_running(&log, &running, &unfinished);
            if !runs {
                end_last_turn(&mut log, &unfinished);
            }
            let summary = measure.summary(&log, unwritten.as_ref());
            let repair = Repair::from_log(after(&log, summary));
            let Pieces { earlier, running } = if runs {
                repair.finish_running()
            } else {
                Pieces { earlier: repair.finish(), running: Vec::new() }
            };
            let filled = measure.fill(&earlier, &running);
            let messages = summary.map(message_of).into_iter();
            let messages = messages.chain(filled.turns.into_iter().flatten()).chain(running).collect();
            (messages, covered.unwrap_or(filled.full))
        };
        registry.load(&**store, key, None, registry.first_range(key, measure), see).await
    }

    /// Closes the dropped turns of this process whose end is not written yet, in all conversations. Call it before
    /// the program exits, so that the text those turns had shown is kept.
    ///
    /// # Errors
    /// The first failure of the store. Ends that could not be written are kept and can be retried.
    pub async fn close_unfinished(&self) -> Result<()> {
        self.settings.registry.close_all(&*self.settings.store).await.map_err(Into::into)
    }

    /// Returns the calls that a conversation waits for, in call order. A process that did not receive the answer itself
    /// can then run them.
    ///
    /// The last turn left them to the caller. They are calls of a
    /// [client-side tool](advisor_core::ToolDefinition::client_side), for example, or all calls of a chain without a
    /// tool loop. Their results begin the next turn; once that has begun, the list is empty. A rolled-back turn is
    /// skipped. Incomplete calls, and those of a filtered or truncated answer, must not run and are not listed.
    ///
    /// # At most once
    /// A key alone does not keep a call from running twice. For a call that must not run twice
    /// ([`Effect::AtMostOnce`](advisor_core::Effect)), record its start first, with
    /// [`record_call_start`](Self::record_call_start). Run the call only if that succeeds.
    ///
    /// # Errors
    /// If the conversation cannot be loaded.
    ///
    /// # Example
    /// ```
    /// use advisor_core::ConversationKey;
    /// use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> advisor_core::Result<()> {
    /// let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    /// for open in memory.client_side_calls(&ConversationKey::new("c1")?).await? {
    ///     println!("{:?}: {}", open.key, open.call.name);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn client_side_calls(&self, key: &ConversationKey) -> Result<Vec<ClientSideCall>> {
        let Settings { store, registry, .. } = &self.settings;
        Ok(LastTurn::load(&**store, registry, key).await?.client_side_calls())
    }

    /// Records that a [client-side call](Self::client_side_calls) starts, before it runs, so that it runs at
    /// most once. Of all processes and tasks that try, on any branch, one gets `Ok` and runs the call. On an error, do
    /// not run it.
    ///
    /// The result then begins the next turn, like that of any client-side call. If it never comes, for example
    /// after a crash, the next turn sends the model [`VERIFY_BEFORE_RETRYING`](crate::VERIFY_BEFORE_RETRYING). A
    /// denied call needs no recorded start.
    ///
    /// # Cancellation
    /// Dropping the future leaves the start either recorded or not, so do not run the call. A lease that it took
    /// ends when it expires, or with the next turn of this process.
    ///
    /// # Errors
    /// - [`CallAlreadyStarted`](advisor_core::ErrorKind::CallAlreadyStarted) if the start is recorded already.
    /// - [`NoClientSideCall`](advisor_core::ErrorKind::NoClientSideCall) if the conversation does not wait for a call of this
    ///   key and id. Either the call has a result, the conversation has continued, or the key belongs to another
    ///   call.
    /// - [`ConversationBusy`](advisor_core::ErrorKind::ConversationBusy) while a turn of the conversation runs or waits to run.
    /// - [`Fenced`](advisor_core::ErrorKind::Fenced) or [`StoreConflict`](advisor_core::ErrorKind::StoreConflict) if another process took the
    ///   conversation meanwhile.
    /// - [`NotPersisted`](advisor_core::ErrorKind::NotPersisted) if the start could not be stored, or it is unknown whether it
    ///   was.
    /// - The errors of loading the conversation.
    ///
    /// A turn that begins while a start is recorded may be rejected as busy.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{CallStart, ConversationKey, ErrorKind, Message, Result, ToolResult};
    /// use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    /// let conversation = ConversationKey::new("c1")?;
    /// let mut results = Vec::new();
    /// for open in memory.client_side_calls(&conversation).await? {
    ///     let Some(key) = open.key else { continue };
    ///     let start = CallStart::new(key, open.call.id.clone());
    ///     match memory.record_call_start(&conversation, &start).await {
    ///         // Run it only now.
    ///         Ok(()) => results.push(Message::tool(ToolResult::new(&open.call, vec!["paid".into()]))),
    ///         Err(error) if error.kind() == ErrorKind::CallAlreadyStarted => {}
    ///         Err(error) => return Err(error),
    ///     }
    /// }
    /// // The results begin the next turn: `client.prompt().messages(results).conversation(conversation)`.
    /// # Ok(()) }
    /// ```
    pub async fn record_call_start(&self, conversation: &ConversationKey, start: &CallStart) -> Result<()> {
        // The turn that holds the conversation meanwhile. Recorders wait for each other, never for a turn.
        let holder = Turn::new(TurnId::new("call-starts")?);
        let request = ChatRequest { turn: holder, ..ChatRequest::new(MessageList::default()) };
        let recorder = TurnMemory::new(&self.settings, &request, conversation.clone()).0;
        let hold = recorder.lease.acquire(Some(OnBusy::Reject)).await?;
        let recorded = append_starts(&recorder, |last| Ok((vec![last.open_call(start)?], ()))).await;
        recorder.lease.release_all(&hold).await;
        recorded
    }
}

impl AdvisorInfo for ChatMemoryAdvisor {
    fn name(&self) -> &'static str {
        "chat-memory"
    }

    /// Places memory in every round, inside the tool loop, unless it is added with [`Phase::Turn`](advisor_core::Phase::Turn).
    fn placement(&self) -> Placement {
        Placement { phase: Phase::Round, role: AdvisorRole::Memory }
    }

    fn on_loop_start(&self, request: &ChatRequest) -> Result<()> {
        // An inner advisor may still name the conversation.
        if request.conversation.is_some() {
            TurnMemory::for_request(&self.settings, request)?.on_loop_start();
        }
        Ok(())
    }

    fn pending_calls(&self) -> Option<&dyn PendingCalls> {
        Some(self)
    }
}

#[async_trait]
impl StreamAdvisor for ChatMemoryAdvisor {
    async fn advise_stream(
        self: Arc<Self>,
        mut request: ChatRequest,
        next: AdvisorChain,
    ) -> Result<ChunkStream> {
        let memory = TurnMemory::for_request(&self.settings, &request)?;
        // Boxed, so that its state is freed before the model is asked and does not stay with every opening stream.
        if let Some(answer) = Box::pin(memory.enter(&mut request, &next)).await? {
            return Ok(request.answer(answer));
        }
        let stream = next.next_stream(request).await?;
        Ok(stream.on_completed(move |response| async move {
            memory.answered(&response).await?;
            Ok(response)
        }))
    }
}

/// The calls that approvals are about.
#[async_trait]
impl PendingCalls for ChatMemoryAdvisor {
    async fn list(&self, conversation: &ConversationKey) -> Result<Vec<ClientSideCall>> {
        self.client_side_calls(conversation).await
    }
}

impl fmt::Debug for ChatMemoryAdvisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatMemoryAdvisor").field("window", &self.settings.measure).finish_non_exhaustive()
    }
}
