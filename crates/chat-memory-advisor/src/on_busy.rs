/// What becomes of a turn of a conversation in which another turn is running: in this process, and in any other
/// where the store hands out [leases](conversation_store::Leases).
///
/// The same turn, submitted again under its id, waits in any case: for what it came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnBusy {
    /// It fails at once, with an error of kind [`ConversationBusy`](advisor_core::ErrorKind::ConversationBusy).
    #[default]
    Reject,
    /// It waits until the conversation is free. Turns of one process that wait begin in the order in which they came,
    /// and none that comes later passes them, but one that interrupts; one that waits for another process asks again and
    /// again, at most once a second. A turn that waits has to be polled, like one that runs: those behind it wait for it.
    ///
    /// Dropping it while it waits leaves no trace, unless that falls into the moment in which a store hands out the
    /// lease: then the conversation stays held for other processes until the lease is over. A turn that is run inside
    /// another one of the same conversation waits for ever: give it a conversation of its own.
    Queue,
    /// The turn that is running ends, as if it had been cancelled: what it had shown is kept with a marker, its
    /// stream gives an error of kind [`Cancelled`](advisor_core::ErrorKind::Cancelled), and then the new one
    /// begins.
    ///
    /// A turn whose stream nobody reads cannot end by itself. After five seconds the new one takes its place
    /// without it, and so it does at once if the other turn runs in another process: that one finds out when it
    /// next writes or renews its lease, ends with an error of kind [`Fenced`](advisor_core::ErrorKind::Fenced), and
    /// what it had shown of an unfinished answer is not kept.
    InterruptPrevious,
}
