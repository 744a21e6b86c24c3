//! `OnBusy`: policy for a turn while another one runs: reject, queue or interrupt.

/// The policy for a turn that starts while another turn of its conversation is running.
///
/// The other turn runs in this process or, if the store grants [leases](conversation_store::Leases), in any other.
/// The same turn, submitted again under its id, always waits for the outcome of the run in progress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnBusy {
    /// Fails at once, with an error of kind [`ConversationBusy`](advisor_core::ErrorKind::ConversationBusy). A
    /// turn that waits for the conversation counts as running.
    #[default]
    Reject,
    /// Waits until the conversation is free. Waiting turns begin in the order in which they came: those of one process,
    /// and among the processes that share a store with [leases](conversation_store::Leases) the first one of each.
    /// Only a turn that interrupts passes them, in another process for at most ten seconds.
    ///
    /// So a turn waits for the running turn and for those before it, and never for one that came later. A turn that
    /// waits for another process requests the lease again after 25 ms, then after pauses that double up to 250 ms; a
    /// conversation stays free for at most that time between two turns. A waiting turn must be polled, like a running
    /// one: the turns of its process behind it wait for it. Other processes pass it if it is not polled for three
    /// seconds. To bound the wait, drop the turn after a time.
    ///
    /// Dropping a waiting turn leaves no trace, unless the store grants the lease at that moment. Then the
    /// conversation stays held for other processes until the lease expires. A turn that is run inside another turn
    /// of the same conversation waits forever: give it a separate conversation.
    Queue,
    /// Ends the running turn as if it had been cancelled, then begins the new one. Until it begins, the new turn
    /// waits ahead of all turns that queue, and must be polled like them. But if a turn of another process has waited
    /// for ten seconds, the new turn waits behind it, and interrupts no other one meanwhile. The text that was shown is kept with a
    /// marker. The stream of the interrupted turn returns an error of kind
    /// [`Cancelled`](advisor_core::ErrorKind::Cancelled). A turn that is interrupted before its beginning was
    /// stored leaves nothing, not even the user's message.
    /// A turn with decisions interrupts none, since the running one may run the same calls.
    ///
    /// A turn whose stream is not polled cannot end by itself. The new turn evicts it after five seconds. A turn
    /// of another process is evicted at once. The text that an evicted turn had shown of an unfinished answer is
    /// not kept.
    ///
    /// An evicted turn of this process ends with `Cancelled` when it is polled again. The kind can be
    /// [`Fenced`](advisor_core::ErrorKind::Fenced) if it was writing its end, or runs without a
    /// [`TurnStream`](advisor_core::TurnStream). A turn of another process notices when it next writes or renews
    /// its lease, and ends with `Fenced`.
    InterruptPrevious,
}
