//! `ChatMemoryAdvisor::record_call_start`: records the start of a client-side call, at most once.

use advisor_core::{CallStart, ChatRequest, ConversationKey, MessageList, Result, Turn, TurnId};

use crate::turn::TurnMemory;
use crate::{ChatMemoryAdvisor, OnBusy};

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
        let recorded = holder.append_starts(|last| Ok((vec![last.open_call(start)?], ()))).await;
        holder.release(&guard).await;
        recorded
    }
}
