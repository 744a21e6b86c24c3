//! `Effect`: whether a tool may run twice; `CallKey` and `CallStart`: the key of a call and the record of its start.

use std::fmt;
use std::str::FromStr;

use message_aggregator::Text;
use serde::{Deserialize, Serialize};

use crate::{Error, TurnId};

/// Side effects of a tool, which decide how an interrupted call is treated.
///
/// The loop never repeats a call on its own, for any declaration of its tool. A call that was interrupted by a
/// drop or a crash is answered by memory, and the model decides how to continue. The same holds when a turn is
/// submitted again under its id and continues. Calls come a second time only if a caller passes the answer of an
/// earlier run to the loop again. An advisor for a durable engine does so. Then the effect decides; see
/// [`TurnFacts::repeated`](crate::TurnFacts::repeated).
///
/// | the tool declares | before it runs | a call of a repeated answer |
/// | --- | --- | --- |
/// | nothing | nothing is written | is not run; the model reads [`OUTCOME_UNKNOWN`] |
/// | [`Pure`], [`Idempotent`] | nothing is written | is run again, under the same [`CallKey`] |
/// | [`AtMostOnce`] | start recorded | run unless start recorded; then the model reads [`VERIFY_BEFORE_RETRYING`] |
///
/// [`Pure`]: Self::Pure
/// [`Idempotent`]: Self::Idempotent
/// [`AtMostOnce`]: Self::AtMostOnce
/// [`CallKey`]: crate::CallKey
///
/// No effect is the default, since a tool without a declaration has promised nothing. [`Pure`](Self::Pure) or
/// [`Idempotent`](Self::Idempotent) as the default would run `send_email` twice. [`AtMostOnce`](Self::AtMostOnce)
/// would make every tool pay for a write that most do not need. Without a declaration, a call is not run again and
/// nothing is written for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// A run changes nothing: it reads or computes. Running it again only costs time.
    Pure,
    /// A run changes something; a second run under the same [`CallKey`](crate::CallKey) changes nothing more. The
    /// tool passes the key to the system that it changes, or sets something to a value.
    Idempotent,
    /// A run must not happen twice for one call. In a recorded turn, the start of the call is recorded before any
    /// tool of the round runs; if that fails, no tool runs. The call may not run at all: a crash after the record
    /// leaves a start without a run.
    AtMostOnce,
}

/// Result of a call whose outcome is unknown.
pub const OUTCOME_UNKNOWN: &str = "interrupted, outcome unknown";

/// Result of a started call with unknown outcome, if its tool must not run twice.
pub const VERIFY_BEFORE_RETRYING: &str = "interrupted after it was started, outcome unknown; verify before retrying: it may have taken effect, and calling again would do it a second time";

/// Stable name of a tool call: its turn, its round and its position in the round.
///
/// Its text, `turn/round/position`, is the idempotency key that a tool passes to another system. It has at most
/// 150 characters of `A-Z`, `a-z`, `0-9`, `-`, `_` and `/`. A turn's id has no `/`, so two keys never have the
/// same text, and each text parses back into its key. The format is stable; a key is serialised as this text.
///
/// A key is as unique as its turn's id. A minted id is globally unique. If the caller's turn ids are unique only
/// within a conversation, prefix the key with the conversation.
///
/// # Example
/// ```
/// use advisor_core::{CallKey, TurnId};
///
/// let key = CallKey::new(TurnId::new("order-17")?, 2, 0);
/// assert_eq!(key.to_string(), "order-17/2/0");
/// assert_eq!("order-17/2/0".parse::<CallKey>()?, key);
/// # Ok::<(), advisor_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub struct CallKey {
    /// The turn.
    pub turn: TurnId,
    /// The round of the answer that made the call.
    pub round: u32,
    /// The call's position among the calls of that answer, from 0.
    pub position: u32,
}

/// A call that is about to run and must not run twice, as reported to a recorder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallStart {
    /// Its permanent key.
    pub key: CallKey,
    /// The id of the call in its answer and in its result.
    pub call_id: Text,
}

impl CallKey {
    /// Creates the key of the call at `position` of `round`.
    #[must_use]
    pub fn new(turn: TurnId, round: u32, position: u32) -> Self {
        Self { turn, round, position }
    }
}

impl CallStart {
    /// Creates the start of a call from its key and its id in the answer.
    pub fn new(key: CallKey, call_id: impl Into<Text>) -> Self {
        Self { key, call_id: call_id.into() }
    }
}

impl fmt::Display for CallKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.turn, self.round, self.position)
    }
}

/// Parses the text of a key. Each key has exactly one text, so signs and leading zeros are rejected.
impl FromStr for CallKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut parts = text.split('/');
        let mut read = || {
            let turn = TurnId::new(parts.next()?).ok()?;
            let (round, position) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            Some(Self::new(turn, round, position))
        };
        read().filter(|key| key.to_string() == text).ok_or_else(|| {
            Error::configuration("this is no key of a tool call; give the text of one, `turn/round/position`")
        })
    }
}

impl TryFrom<String> for CallKey {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<CallKey> for String {
    fn from(key: CallKey) -> Self {
        key.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn call_key_text_is_unique_stable_and_parseable() {
        let longest = "x".repeat(128);
        let numbers = [0, 1, 10, 11, 110, u32::MAX];
        let mut texts = HashSet::new();
        for turn in ["t", "t-1", "t_1", "1", "11", "-", "_", longest.as_str()] {
            for (round, position) in numbers.iter().flat_map(|one| numbers.map(|other| (*one, other))) {
                let key = CallKey::new(TurnId::new(turn).unwrap(), round, position);
                let text = key.to_string();
                assert_eq!(text, format!("{turn}/{round}/{position}"));
                assert!(text.len() <= 150);
                assert_eq!(text.parse::<CallKey>().unwrap(), key);
                let json = serde_json::to_string(&key).unwrap();
                assert_eq!(json, format!("\"{text}\""));
                assert_eq!(serde_json::from_str::<CallKey>(&json).unwrap(), key);
                assert!(texts.insert(text), "two keys have one text");
            }
        }
    }

    #[test]
    fn invalid_key_is_an_error() {
        for text in [
            "", "t", "t/1", "t/1/", "t/1/0/", "t/1/0/0", "/1/0", "t/01/0", "t/+1/0", "t/-1/0",
            "t/1/4294967296", "a b/1/0",
        ] {
            assert!(text.parse::<CallKey>().is_err(), "{text}");
            assert!(serde_json::from_value::<CallKey>(text.into()).is_err(), "{text}");
        }
    }
}
