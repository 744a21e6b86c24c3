use advisor_core::{
    CallStart, ChatRequest, ConversationKey, Error, ErrorKind, MessageList, Result, Turn, TurnId,
};
use uuid::Uuid;

use crate::advisor::client_side_calls::LastTurn;
use crate::turn::TurnMemory;
use crate::turn::reading::find_in_log;
use crate::{ChatMemoryAdvisor, OnBusy};
use conversation_store::{
    Batch, BatchKey, BatchStep, Entry, EntryId, EntryKind, FencingToken, NewEntry, StoreError, Version,
    append_once,
};

/// The turn id that holds a conversation while a start is recorded. Recorders wait for each other, never for a
/// turn.
const HOLDER: &str = "call-starts";

impl ChatMemoryAdvisor {
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
    /// - [`CallAlreadyStarted`](ErrorKind::CallAlreadyStarted) if the start is recorded already.
    /// - [`NoClientSideCall`](ErrorKind::NoClientSideCall) if the conversation does not wait for a call of this
    ///   key and id. Either the call has a result, the conversation has continued, or the key belongs to another
    ///   call.
    /// - [`ConversationBusy`](ErrorKind::ConversationBusy) while a turn of the conversation runs or waits to run.
    /// - [`Fenced`](ErrorKind::Fenced) or [`StoreConflict`](ErrorKind::StoreConflict) if another process took the
    ///   conversation meanwhile.
    /// - [`NotPersisted`](ErrorKind::NotPersisted) if the start could not be stored, or it is unknown whether it
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
    ///         // Run it only now, with `ToolCallAdvisor::run_call` or otherwise.
    ///         Ok(()) => results.push(Message::tool(ToolResult::new(&open.call, vec!["paid".into()]))),
    ///         Err(error) if error.kind() == ErrorKind::CallAlreadyStarted => {}
    ///         Err(error) => return Err(error),
    ///     }
    /// }
    /// // The results begin the next turn: `client.prompt().messages(results).conversation(conversation)`.
    /// # Ok(()) }
    /// ```
    pub async fn record_call_start(&self, conversation: &ConversationKey, start: &CallStart) -> Result<()> {
        let holder = Turn::new(TurnId::new(HOLDER)?);
        let request = ChatRequest::new(MessageList::new()).with_turn(holder);
        let holder = TurnMemory::new(&self.settings, &request, conversation.clone()).0;
        let guard = holder.acquire(Some(OnBusy::Reject)).await?;
        let recorded = self.append_start(conversation, start, holder.lease.token()).await;
        holder.release(&guard).await;
        recorded
    }

    async fn append_start(
        &self,
        conversation: &ConversationKey,
        start: &CallStart,
        token: Option<FencingToken>,
    ) -> Result<()> {
        let mut tried = None;
        loop {
            let last = self.last_turn(conversation).await?;
            last.validate(start)?;
            if self.is_started_on_a_branch(conversation, &last, start).await? {
                return Err(already_started(start));
            }
            let batch = last.batch(start).with_token(token);
            match append_once(&*self.settings.store, conversation, last.version, batch).await {
                // Another start was recorded, or the conversation has continued.
                Err(StoreError::Conflict { .. }) if tried != Some(last.version) => tried = Some(last.version),
                outcome => return outcome.map(drop).map_err(Error::from),
            }
        }
    }

    /// Checks whether the start is recorded after the answer, on any branch.
    async fn is_started_on_a_branch(
        &self,
        conversation: &ConversationKey,
        last: &LastTurn,
        start: &CallStart,
    ) -> Result<bool> {
        let after = last.entries.first().map_or(EntryId::BEGINNING, |entry| EntryId::new(entry.seq));
        let is_it = |entry: &Entry| {
            matches!(&entry.kind, EntryKind::CallStarted(known) if known.key == start.key).then_some(())
        };
        let found = find_in_log(&*self.settings.store, conversation, after, is_it).await;
        Ok(found.map_err(StoreError::into_load_error)?.is_some())
    }
}

fn already_started(start: &CallStart) -> Error {
    let text = format!("the call {} was started before; do not run it, and wait for its result", start.key);
    Error::new(ErrorKind::CallAlreadyStarted, text)
}

impl LastTurn {
    /// Checks that the conversation waits for this call and that the call was not started.
    fn validate(&self, start: &CallStart) -> Result<()> {
        let calls = self.client_side_calls();
        let is_meant = |call: &&crate::ClientSideCall| {
            call.key.as_ref() == Some(&start.key) && call.call.id == start.call_id
        };
        match calls.iter().find(is_meant) {
            None => Err(Error::new(
                ErrorKind::NoClientSideCall,
                format!(
                    "the conversation does not wait for the call {}; list its `client_side_calls`",
                    start.key
                ),
            )),
            Some(call) if call.started => Err(already_started(start)),
            Some(_) => Ok(()),
        }
    }

    /// Returns the batch that appends the start after the end of the turn that made the call.
    ///
    /// Turns without transcript messages, such as a rolled-back one, may follow that turn. They are left on
    /// another branch, since the entries of a turn must be adjacent.
    fn batch(&self, start: &CallStart) -> Batch {
        let turn = &start.key.turn;
        // The key is unique: a second writer of the same start must not get success under the first one's key.
        let key = BatchKey::new(turn.clone(), start.key.round, BatchStep::Starts(Uuid::now_v7()));
        let entries = vec![NewEntry::new(turn.clone(), EntryKind::CallStarted(start.clone()))];
        let seqs = self.entries.iter().map(|entry| entry.seq);
        let written = seqs.filter(|seq| *seq <= self.version.as_u64()).max();
        let parent = written.filter(|seq| Version::new(*seq) != self.version).map(EntryId::new);
        Batch::new(key, entries).with_parent(parent).with_last_turn(self.last_turn.clone())
    }
}
