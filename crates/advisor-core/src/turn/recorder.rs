//! `TurnRecorder`, `Record`, `Step` and `TurnEnd`: the interface that receives everything final in a turn.

use async_trait::async_trait;
use futures::future::BoxFuture;
use message_aggregator::{FinishReason, Message, Text};
use serde::{Deserialize, Serialize};

use crate::{CallKey, CallStart, Result};

/// Receiver of each message of a turn when it becomes final. Memory registers one in `before`.
///
/// # Ordering
/// The tool loop awaits `record`:
/// - for an answer, before a tool of it starts;
/// - for the starts of calls that must not run twice, before any tool of the round starts;
/// - for all results of a round, before the next request;
/// - for the end of the turn, before anyone outside learns of it.
///
/// # Cancellation
/// Dropping the future of `record` leaves the record either written or not. For a dropped turn,
/// [`TurnRecorder::dropped`] is called after all of the turn's work has stopped.
///
/// # Errors
/// A failing `record` ends the turn: no tool runs, no further request is sent, the caller receives the error. The
/// other recorders are still called. If the end itself cannot be recorded, [`TurnRecorder::dropped`] is called.
///
/// # Example
/// ```
/// use advisor_core::{Record, Result, TurnEnd, TurnRecorder, async_trait};
/// use std::sync::Mutex;
///
/// #[derive(Default)]
/// struct Counter(Mutex<usize>);
///
/// #[async_trait]
/// impl TurnRecorder for Counter {
///     async fn record(&self, record: &Record) -> Result<()> {
///         *self.0.lock().unwrap() += record.messages.len();
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait TurnRecorder: Send + Sync + 'static {
    /// Records messages that have become final.
    async fn record(&self, record: &Record) -> Result<()>;

    /// Takes over the delivered output of a turn that was dropped in `round` and will not continue. It must not
    /// block. The partial text of `end` is that of an answer of this round.
    ///
    /// Returns the remaining work, if any. It runs at once if the caller gave a [`Spawner`](crate::Spawner), and
    /// is deferred otherwise.
    fn dropped(&self, _round: u32, _end: &TurnEnd) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// Messages that became final together, and the step of the turn at which they did.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// The round of the messages.
    pub round: u32,
    /// The step that made them final.
    pub step: Step,
    /// The messages, in the order of the transcript; empty where calls start.
    pub messages: Vec<Message>,
    /// The calls that wait for a person behind this end of the turn, of tools that the loop knows.
    pub pending: Vec<PendingCall>,
}

/// A call that its turn leaves to a person, and the definition of its tool. The loop reports it with the end of the turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingCall {
    /// Its permanent key.
    pub key: CallKey,
    /// The [digest](crate::ToolDefinition::digest) of the definition of its tool, as the model was offered it.
    pub definition: Text,
}

impl Record {
    /// Creates a record for a step of a round.
    #[must_use]
    pub fn new(round: u32, step: Step, messages: Vec<Message>) -> Self {
        Self { round, step, messages, pending: Vec::new() }
    }
}

/// The steps at which messages of a turn become final.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The model's answer in a round that is followed by another.
    Answer,
    /// The calls that are about to run, of tools that must not run twice ([`Effect::AtMostOnce`](crate::Effect)).
    ///
    /// The record has no messages. It follows the answer that made the calls, at most once per round, in call
    /// order. Calls that are denied or have bad arguments are not included. A recorder that knows of a start in an
    /// earlier run of the turn [notes](crate::TurnFacts::started) the call in the turn, or fails.
    Started(Vec<CallStart>),
    /// The results of all calls of a round, in call order.
    Results,
    /// Messages that a hook of the loop added for the next round.
    Injected,
    /// The last message, if there is one, and the end of the turn.
    End(TurnEnd),
}

/// The end of a turn. Memory stores its JSON form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnEnd {
    /// With an answer.
    #[serde(with = "finish_member")]
    Completed(FinishReason),
    /// With an error, after this part of the answer's text had been delivered.
    Failed {
        /// The text of the unfinished round that the caller had been shown.
        partial: Text,
    },
    /// With an error of kind [`InvalidInput`](crate::ErrorKind::InvalidInput), before anything of an answer was
    /// delivered: the provider refused the content of the messages since the turn's last answer.
    Refused,
    /// By a drop or a cancellation, after this part of the answer's text had been delivered.
    Interrupted {
        /// The text of the unfinished round that the caller had been shown.
        partial: Text,
    },
    /// By the caller's request to discard the turn. Tools that ran are not undone.
    RolledBack,
}

/// The JSON form of the reason of a completed turn: a member of the end.
mod finish_member {
    use message_aggregator::FinishReason;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Form<T> {
        finish: T,
    }

    pub(super) fn serialize<S: Serializer>(finish: &FinishReason, serializer: S) -> Result<S::Ok, S::Error> {
        Form { finish }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FinishReason, D::Error> {
        Ok(Form::deserialize(deserializer)?.finish)
    }
}
