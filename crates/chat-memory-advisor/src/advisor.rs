pub(crate) mod call_start;
pub(crate) mod handed_out;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChunkStream, ConversationKey, MessageList, Phase,
    Placement, Result, StreamAdvisor, async_trait,
};

use crate::conversation::unfinished::Unfinished;
use crate::settings::Settings;
use crate::turn::reading::{Reading, told};
use crate::turn::several_choices;
use crate::{MemoryTexts, OnBusy, OnOverflow, Summarizer, TokenCounter, TurnMemory, Window};
use conversation_store::TimeoutStore;
use conversation_store::{ConversationStore, EntryId, StoreError};

/// Remembers conversations: stores each message as it becomes final, and sends what it remembers.
///
/// It stands inside the tool loop, where it sees every round; in [`Phase::Turn`] it stands outside and
/// stores what the loop announces. Both store the same messages at the same points. Clones share all they
/// have; two memories that are made apart do not know of each other's running turns.
///
/// # Ordering
/// The input of a turn is stored before the first request; an answer before anyone outside learns that it
/// is complete, and so before a tool of it starts; the starts of calls that must not run twice
/// ([`Effect::AtMostOnce`](advisor_core::Effect)) before any tool of their round; results before the next request; the last answer and
/// the end of the turn together, before `Completed` comes out. The model is sent the request's system
/// messages, the view of the conversation and the turn's messages, and nothing else.
///
/// # Cancellation
/// Each append is made as a whole or not at all. A turn that was dropped is closed with the text that had
/// been shown, at once where the caller gave a [`Spawner`](advisor_core::Spawner), otherwise with the next
/// turn's input or by [`ChatMemoryAdvisor::close_unfinished`]. After a crash the next turn closes it
/// without that text. What waits to be written is bounded, to 64 MiB in all; a turn that is dropped beyond
/// that is closed as after a crash, so a server gives its clients a spawner.
///
/// # Errors
/// Of kind [`ConversationBusy`](advisor_core::ErrorKind::ConversationBusy) while another turn of the
/// conversation runs, unless [`OnBusy`] says otherwise,
/// [`Fenced`](advisor_core::ErrorKind::Fenced) if another turn took its place,
/// [`StoreConflict`](advisor_core::ErrorKind::StoreConflict) if another process changed
/// it, [`Store`](advisor_core::ErrorKind::Store) if it cannot be read,
/// [`NotPersisted`](advisor_core::ErrorKind::NotPersisted) if something could not be stored, with the [`StoreError`] as its
/// source: [`Full`](StoreError::Full) and [`ConversationFull`](StoreError::ConversationFull) stay until something is deleted,
/// [`TurnIdReused`](advisor_core::ErrorKind::TurnIdReused) for a turn whose id was used for something else, and
/// [`Configuration`](advisor_core::ErrorKind::Configuration) for a turn without a conversation, one that
/// asks for several choices, and input that answers a call nobody made.
///
/// # The same turn again
/// A turn that is submitted again under its [id](advisor_core::TurnId), with the same input, waits while it runs
/// somewhere; is given the same answer if it was answered; and otherwise goes on where it stopped, without a
/// second user message. Its tools are not run again: calls without a result are answered
/// [`OUTCOME_UNKNOWN`](crate::OUTCOME_UNKNOWN).
///
/// # Example
/// See the crate's example.
#[derive(Clone)]
pub struct ChatMemoryAdvisor {
    settings: Settings,
}

impl ChatMemoryAdvisor {
    /// A memory that keeps conversations in `store` and sends all of them.
    pub fn new(store: impl ConversationStore) -> Self {
        Self { settings: Settings::new(Arc::new(store)) }
    }

    /// The same memory, which sends no more of a conversation than `window`.
    #[must_use]
    pub fn with_window(mut self, window: Window) -> Self {
        self.settings.measure.window = window;
        self
    }

    /// The same memory, with what becomes of a turn that is larger than the window by itself.
    #[must_use]
    pub fn with_on_overflow(mut self, on_overflow: OnOverflow) -> Self {
        self.settings.measure.on_overflow = on_overflow;
        self
    }

    /// The same memory, with what becomes of a turn while another one of its conversation runs.
    #[must_use]
    pub fn with_on_busy(mut self, on_busy: OnBusy) -> Self {
        if on_busy == OnBusy::InterruptPrevious {
            self.settings.registry.interrupts();
        }
        self.settings.on_busy = on_busy;
        self
    }

    /// The same memory, whose turns hold their conversation for so long at a time: 30 seconds if left out, a
    /// second at least. It is for stores that hand out [leases](conversation_store::Leases); a turn renews its own three times as
    /// often.
    ///
    /// A conversation whose process was killed is free again after this time. A turn whose stream is not read
    /// for so long may lose its conversation to another process.
    #[must_use]
    pub fn with_lease_ttl(mut self, lease_ttl: Duration) -> Self {
        self.settings.lease_ttl = lease_ttl.max(Duration::from_secs(1));
        self
    }

    /// The same memory, which sends running summaries in place of the oldest turns. Without a summarizer, summaries
    /// that are stored are not sent.
    #[must_use]
    pub fn with_summaries(mut self, summarizer: Summarizer) -> Self {
        self.settings.measure.summarizer = Some(summarizer);
        self
    }

    /// The same memory, which waits so long for each operation of its store: 30 seconds if left out. It needs a tokio
    /// runtime with time.
    ///
    /// What did not answer by then has failed, as [`StoreError`] says: a load with
    /// [`Unavailable`](StoreError::Unavailable); an append with [`OutcomeUnknown`](StoreError::OutcomeUnknown), after it
    /// was made once more under its key.
    #[must_use]
    pub fn with_store_timeout(mut self, time: Duration) -> Self {
        self.settings.store = Arc::new(TimeoutStore::clone(&self.settings.store).with_timeout(time));
        self
    }

    /// The same memory, with other texts for what it adds to a conversation.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if one of them is empty.
    pub fn with_texts(mut self, texts: MemoryTexts) -> Result<Self> {
        texts.validate()?;
        self.settings.measure.texts = Arc::new(texts);
        Ok(self)
    }

    /// The same memory, which counts tokens so. Left out, it guesses: [`ApproximateTokens`](crate::ApproximateTokens).
    #[must_use]
    pub fn with_token_counter(mut self, counter: impl TokenCounter) -> Self {
        self.settings.measure.counter = Arc::new(counter);
        self
    }

    /// What the next turn of a conversation would be sent before its own messages: the view of what is
    /// stored, repaired, with the text that dropped turns of this process had shown. It changes nothing.
    ///
    /// A turn that is running looks as if it had been interrupted now, and one that waits for its caller as if the
    /// conversation had gone on without the results. [`handed_out_calls`](Self::handed_out_calls) lists those calls, and
    /// [`ConversationStore::read`] gives a log as it is.
    ///
    /// # Errors
    /// If the conversation cannot be loaded.
    pub async fn transcript(&self, key: &ConversationKey) -> Result<MessageList> {
        self.transcript_to(key, None, &self.settings.registry.unfinished(key)).await
    }

    /// The same of an older branch: what a turn would be sent that branches off [after](crate::ForkPoint::After)
    /// this entry.
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
        unfinished: &[Unfinished],
    ) -> Result<MessageList> {
        let snapshot = self
            .settings
            .registry
            .load(&*self.settings.store, key, tip, &Reading::of(&self.settings.measure))
            .await;
        let pending = self.settings.registry.change(key, |slot| slot.summary.clone());
        let snapshot = snapshot.map_err(StoreError::into_load_error)?;
        let (summary, filled) = told(snapshot, pending.as_ref(), unfinished, &self.settings.measure);
        Ok(summary.into_iter().chain(filled.turns.into_iter().flatten()).collect())
    }

    /// Closes the turns of this process that were dropped and whose end is not written yet, in all
    /// conversations: what a program does before it exits, so that the text they had shown is kept.
    ///
    /// # Errors
    /// The first failure of the store. What could not be written is kept and can be tried again.
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

    /// In every round, inside the tool loop, unless whoever adds it says [`Phase::Turn`].
    fn placement(&self) -> Placement {
        Placement::new(Phase::Round).with_role(AdvisorRole::Memory)
    }

    fn on_loop_start(&self, request: &ChatRequest) -> Result<()> {
        // The conversation may still be named further in.
        if request.conversation.is_some() {
            TurnMemory::of(&self.settings, request)?.on_loop_start();
        }
        Ok(())
    }
}

#[async_trait]
impl StreamAdvisor for ChatMemoryAdvisor {
    async fn advise_stream(
        self: Arc<Self>,
        mut request: ChatRequest,
        next: AdvisorChain,
    ) -> Result<ChunkStream> {
        if request.options.choices.is_some_and(|choices| choices > 1) {
            return Err(several_choices());
        }
        let memory = TurnMemory::of(&self.settings, &request)?;
        // What is needed to enter is let go of before the model is asked: it would wait with every stream that is opening.
        if let Some(answer) = Box::pin(memory.enter(&mut request)).await? {
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
