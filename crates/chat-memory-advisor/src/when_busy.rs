/// What becomes of a turn of a conversation in which another turn of this process is running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenBusy {
    /// It fails at once, with an error of kind [`ConversationBusy`](advisor_core::ErrorKind::ConversationBusy).
    #[default]
    Reject,
    /// It waits until the conversation is free. Turns that wait are woken one at a time, in the order in which they
    /// came.
    ///
    /// Dropping it while it waits leaves no trace. A turn that is run inside another one of the same
    /// conversation waits for ever: give it a conversation of its own.
    Queue,
}
