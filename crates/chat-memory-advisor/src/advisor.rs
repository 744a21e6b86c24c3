//! `ChatMemoryAdvisor`: the advisor, its settings, `transcript` and `close_unfinished`.

pub(crate) mod call_start;
pub(crate) mod client_side_calls;
mod pending_calls;
pub(crate) mod turn_page;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChunkStream, ConversationKey, MessageList,
    PendingCalls, Phase, Placement, Result, StreamAdvisor, async_trait,
};

use crate::conversation::unfinished_turn::UnfinishedTurn;
use crate::settings::Settings;
use crate::turn::TurnMemory;
use crate::turn::reading::{Reading, messages_before_next_turn};
use crate::{MemoryTexts, OnBusy, OnOverflow, Summarizer, TokenCounter, Window};
use conversation_store::{ConversationStore, EntryId, StoreError, TimeoutStore};

/// An advisor that stores each message as it becomes final, and sends the stored conversation to the model.
///
/// By default it is inside the tool loop and sees every round. In [`Phase::Turn`] it is outside the loop and
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
/// stays stored, and later turns are sent [`MESSAGE_REFUSED`](crate::MESSAGE_REFUSED) in its place.
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
/// - [`NotPersisted`](advisor_core::ErrorKind::NotPersisted) if an append failed, with the [`StoreError`] as its
///   source. [`Full`](StoreError::Full) and [`ConversationFull`](StoreError::ConversationFull) stay until
///   something is deleted.
/// - [`TurnIdReused`](advisor_core::ErrorKind::TurnIdReused) for a turn whose id was used for something else.
/// - [`Configuration`](advisor_core::ErrorKind::Configuration) for a turn without a conversation,
///   and for input with a result that no call waits for.
///
/// # The same turn again
/// A turn may be submitted again under its [id](advisor_core::TurnId), with the same input. It waits while an
/// earlier run is in progress, in this process or another. If the turn was answered, it gets the same answer.
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

    /// Sets how long each operation of the store may take: 30 seconds by default. It needs a tokio runtime with
    /// time.
    ///
    /// An operation that takes longer fails, as [`StoreError`] describes. A load fails with
    /// [`Unavailable`](StoreError::Unavailable), an append with [`OutcomeUnknown`](StoreError::OutcomeUnknown)
    /// after one retry under its key.
    #[must_use]
    pub fn with_store_timeout(mut self, time: Duration) -> Self {
        self.settings.store = Arc::new(TimeoutStore::clone(&self.settings.store).with_timeout(time));
        self
    }

    /// Replaces the texts that memory adds to a conversation.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if one of them is empty.
    pub fn with_texts(mut self, texts: MemoryTexts) -> Result<Self> {
        texts.validate()?;
        self.settings.measure.texts = Arc::new(texts);
        Ok(self)
    }

    /// Sets the token counter. The default is an estimate: [`ApproximateTokens`](crate::ApproximateTokens).
    #[must_use]
    pub fn with_token_counter(mut self, counter: impl TokenCounter) -> Self {
        self.settings.measure.counter = Arc::new(counter);
        self
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
        self.transcript_to(key, None, &self.settings.registry.unfinished.turns_in(key)).await
    }

    /// Returns the same for an older branch: the messages for a turn that forks [after](crate::ForkPoint::After)
    /// the entry `tip`.
    ///
    /// # Errors
    /// If the conversation cannot be loaded or has no such entry.
    pub async fn transcript_of_branch(&self, key: &ConversationKey, tip: EntryId) -> Result<MessageList> {
        self.transcript_to(key, Some(tip), &[]).await
    }

    async fn transcript_to(
        &self,
        key: &ConversationKey,
        tip: Option<EntryId>,
        unfinished: &[UnfinishedTurn],
    ) -> Result<MessageList> {
        let holder = || self.settings.registry.locks.holder(key).filter(|_| tip.is_none());
        // A turn may begin or end while the store is read.
        let before = holder();
        let snapshot = self
            .settings
            .registry
            .load(&*self.settings.store, key, tip, &Reading::new(&self.settings.measure))
            .await;
        let pending = self.settings.registry.summaries.pending(key);
        let snapshot = snapshot.map_err(StoreError::into_load_error)?;
        let running: Vec<_> = before.into_iter().chain(holder()).collect();
        let (summary, filled) = messages_before_next_turn(
            snapshot,
            pending.as_ref(),
            unfinished,
            &running,
            &self.settings.measure,
        );
        Ok(summary.into_iter().chain(filled.turns.into_iter().flatten()).collect())
    }

    /// Closes the dropped turns of this process whose end is not written yet, in all conversations. Call it before
    /// the program exits, so that the text those turns had shown is kept.
    ///
    /// # Errors
    /// The first failure of the store. Ends that could not be written are kept and can be retried.
    pub async fn close_unfinished(&self) -> Result<()> {
        self.settings
            .registry
            .close_all(&*self.settings.store, &self.settings.measure.texts)
            .await
            .map_err(Into::into)
    }
}

impl AdvisorInfo for ChatMemoryAdvisor {
    fn name(&self) -> &'static str {
        "chat-memory"
    }

    /// Places memory in every round, inside the tool loop, unless it is added with [`Phase::Turn`].
    fn placement(&self) -> Placement {
        Placement::new(Phase::Round).with_role(AdvisorRole::Memory)
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

impl fmt::Debug for ChatMemoryAdvisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatMemoryAdvisor").field("window", &self.settings.measure).finish_non_exhaustive()
    }
}
