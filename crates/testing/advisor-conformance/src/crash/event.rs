//! `Event` and `Outcome`: the events of a case, and how a turn ended for its reader.

use std::fmt;

use advisor_core::{CallKey, ChatResponse, Chunk, Effect, ErrorKind, MessageList, Text, ToolSet, TurnId};
use conversation_store::{BatchKey, NewEntry, Version};

use super::{AwaitPoint, Fault};
use crate::sent::written;

/// An event while turns run, recorded by instrumented leaves and the driver. All events have one order.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A turn is about to be polled for the first time.
    TurnStarted(TurnId),
    /// A batch was applied in the store; the caller may never learn of it.
    Appended {
        /// Its key.
        key: BatchKey,
        /// Its entries.
        entries: Vec<NewEntry>,
        /// The version after it.
        version: Version,
    },
    /// A batch was appended again under a key that was applied before.
    AppendedAgain {
        /// Its key.
        key: BatchKey,
        /// The version that the store returned.
        version: Version,
    },
    /// The model was asked.
    Asked {
        /// The turn.
        turn: TurnId,
        /// The number of the request in the turn, from 1.
        round: u32,
        /// The messages of the request.
        messages: MessageList,
        /// The offered tools.
        tools: ToolSet,
    },
    /// The model failed, or its answer was truncated.
    AnswerFailed {
        /// The number of the request in the turn.
        round: u32,
    },
    /// A tool was started.
    ToolStarted {
        /// The key of the call, unique among all calls.
        key: CallKey,
        /// The call id from the model.
        call_id: Text,
        /// The effect of another run of it, if the tool declares it.
        effect: Option<Effect>,
    },
    /// A tool had its effect.
    ToolEffect(CallKey),
    /// The loop's hook for its start was called.
    LoopStarted,
    /// The loop's hook before a round was called.
    RoundStarted,
    /// The loop's hook after a round was called, with this answer.
    RoundEnded(ChatResponse),
    /// The loop's hook for its end was called.
    LoopEnded,
    /// The reader received a chunk.
    Delivered(Chunk),
    /// A fault was injected at its point.
    Injected {
        /// The number of the point.
        point: usize,
        /// The kind of the point.
        await_point: AwaitPoint,
        /// The fault.
        fault: Fault,
    },
    /// The turn has ended for its reader.
    TurnEnded(Outcome),
    /// Parts of the turn remained when it had ended: the number of running operations, answers and tools.
    Leaked(usize),
    /// A leaf continued while no turn was running.
    Late(AwaitPoint),
}

/// The end of a turn, for its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The reader received `Completed`.
    Completed,
    /// The reader received an error. For a cancelled turn it is [`ErrorKind::Cancelled`].
    Failed(ErrorKind),
    /// The stream ended with neither.
    Stopped,
    /// The reader dropped it.
    Dropped,
    /// The process was killed.
    Killed,
    /// A panic came out of it.
    Panicked,
    /// The turn did not end within a minute of tokio's clock, and was dropped.
    Stuck,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TurnStarted(turn) => write!(f, "turn {turn} begins"),
            Self::Appended { key, entries, version } => {
                write!(f, "appended {}/{}: ", key.round, key.step)?;
                for entry in entries {
                    write!(f, "{} ", entry.kind.label())?;
                }
                write!(f, "-> version {version}")
            }
            Self::AppendedAgain { key, version } => {
                write!(f, "appended {}/{} again -> version {version}", key.round, key.step)
            }
            Self::Asked { round, messages, .. } => {
                write!(f, "asked, round {round}: {}", written(messages.iter()))
            }
            event => write!(f, "{event:?}"),
        }
    }
}
