use std::fmt;

use advisor_core::{
    BlockDelta, CallKey, ChatResponse, Chunk, Effect, ErrorKind, MessageList, Text, ToolSet, TurnId,
};
use conversation_store::{BatchKey, NewEntry, Version};

use super::{Mishap, Place};

/// One thing that happened while turns ran, as instrumented leaves and the driver tell it. All of them have one order.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Happened {
    /// A turn is about to be polled for the first time.
    Began(TurnId),
    /// A batch was applied in the store; the caller may never learn of it.
    Appended {
        /// Its key.
        key: BatchKey,
        /// Its entries.
        entries: Vec<NewEntry>,
        /// The version it led to.
        version: Version,
    },
    /// A batch was appended once more under a key that was applied before.
    AppendedAgain {
        /// Its key.
        key: BatchKey,
        /// The version that the store gave.
        version: Version,
    },
    /// The model was asked.
    Asked {
        /// The turn.
        turn: TurnId,
        /// The number of the request in the turn, from 1.
        round: u32,
        /// What it was sent.
        messages: MessageList,
        /// The tools that it was offered.
        tools: ToolSet,
    },
    /// The model failed, or its answer broke off.
    AnswerFailed {
        /// The number of the request in the turn.
        round: u32,
    },
    /// A tool was started.
    ToolStarted {
        /// The key of the call, which no other call ever has.
        key: CallKey,
        /// The id that the model gave it.
        call_id: Text,
        /// What running it once more would do, if the tool says so.
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
    /// The reader was given a chunk.
    Delivered(Chunk),
    /// A mishap was due, and happened.
    Struck {
        /// The point.
        point: usize,
        /// Where it is.
        place: Place,
        /// What happened.
        mishap: Mishap,
    },
    /// The turn is over for its reader.
    Over(Over),
    /// Something of the turn was still there when the turn was over: so many running operations, answers and tools.
    Left(usize),
    /// A leaf went on when no turn was running.
    Late(Place),
}

/// How a turn is over for its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Over {
    /// `Completed` came out.
    Completed,
    /// An error came out. Of a turn that was cancelled, it is [`ErrorKind::Cancelled`].
    Failed(ErrorKind),
    /// It just stopped, with neither.
    Stopped,
    /// The reader dropped it.
    Dropped,
    /// The process was killed.
    Killed,
    /// A panic came out of it.
    Panicked,
    /// It waited for what did not come within a minute of tokio's clock, and was dropped.
    Stuck,
}

impl fmt::Display for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Began(turn) => write!(f, "turn {turn} begins"),
            Self::Appended { key, entries, version } => {
                write!(f, "appended {}/{}: ", key.round, key.step)?;
                for entry in entries {
                    write!(f, "{} ", super::words::of_entry(&entry.kind))?;
                }
                write!(f, "-> version {version}")
            }
            Self::AppendedAgain { key, version } => {
                write!(f, "appended {}/{} again -> version {version}", key.round, key.step)
            }
            Self::Asked { round, messages, .. } => {
                write!(f, "asked, round {round}: {}", super::words::of_messages(messages.iter()))
            }
            Self::AnswerFailed { round } => write!(f, "the answer of round {round} fails"),
            Self::ToolStarted { key, call_id, .. } => write!(f, "tool started: {call_id} ({key})"),
            Self::ToolEffect(key) => write!(f, "tool had its effect: {key}"),
            Self::Delivered(Chunk::Delta { block, delta: BlockDelta::Text(text) }) => {
                write!(f, "delivered text of {block}: {text:?}")
            }
            Self::Delivered(Chunk::Completed(response)) => {
                write!(f, "delivered Completed: {:?}", response.text())
            }
            Self::Delivered(Chunk::RoundCompleted(response)) => {
                write!(f, "delivered RoundCompleted of round {}", response.round())
            }
            Self::Delivered(Chunk::AttemptRestarted { round }) => {
                write!(f, "delivered that round {round} is void")
            }
            Self::Delivered(chunk) => write!(f, "delivered another chunk of round {}", chunk.round()),
            Self::Struck { point, place, mishap } => {
                write!(f, "at point {point} ({place}): {mishap:?}")
            }
            Self::Over(over) => write!(f, "over: {over:?}"),
            Self::LoopStarted => f.write_str("the loop starts"),
            Self::RoundStarted => f.write_str("the loop starts a round"),
            Self::RoundEnded(response) => {
                write!(f, "the loop is given the answer of round {}", response.round())
            }
            Self::LoopEnded => f.write_str("the loop is finalized"),
            Self::Left(left) => write!(f, "{left} parts of the turn are still there"),
            Self::Late(place) => write!(f, "went on without a turn: {place}"),
        }
    }
}
