//! The JSON form of an error: kind, text and `emitted`, without content and causes.

use std::ops::Not;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Error, ErrorKind};

#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    kind: ErrorKind,
    message: &'a str,
    #[serde(skip_serializing_if = "Not::not")]
    emitted: bool,
}

#[derive(Deserialize)]
struct Read {
    #[serde(flatten)]
    kind: ErrorKind,
    message: String,
    #[serde(default)]
    emitted: bool,
}

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written { kind: self.kind(), message: &self.0.message, emitted: self.emitted() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Error {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Read { kind, message, emitted } = Read::deserialize(deserializer)?;
        let error = Self::new(kind, message);
        Ok(if emitted { error.mark_emitted() } else { error })
    }
}

/// A delay in whole milliseconds, rounded up.
pub(super) mod milliseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::ref_option, reason = "serde passes a reference")]
    pub(in super::super) fn serialize<S: Serializer>(
        delay: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let milliseconds =
            |delay: Duration| u64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        delay.map(milliseconds).serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Option::<u64>::deserialize(deserializer).map(|read| read.map(Duration::from_millis))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use message_aggregator::ChatResponse;
    use serde_json::{Value, json};

    use super::*;
    use crate::DecisionProblem;

    /// Every kind, with and without its data.
    fn kinds() -> Vec<ErrorKind> {
        use ErrorKind::*;
        let delays = [None, Some(Duration::ZERO), Some(Duration::from_millis(1_500))];
        let mut kinds = delays.map(|retry_after| RateLimited { retry_after }).to_vec();
        kinds.extend([None, Some(503)].map(|status| Provider { status }));
        kinds.extend([None, Some(12)].map(|position| Protocol { position }));
        kinds.extend([DecisionProblem::Policy, DecisionProblem::Unknown].map(|problem| Approval { problem }));
        kinds.extend([
            Authentication,
            ContextOverflow,
            InvalidHistory,
            NotFound,
            InvalidInput,
            InvalidRequest,
            Connection,
            Timeout,
            Truncated,
            TooLarge,
            Unfinished,
            Tool,
            InvalidOutput,
            ConversationBusy,
            TurnIdReused,
            CallAlreadyStarted,
            NoClientSideCall,
            Fenced,
            StoreConflict { current: 7 },
            NotPersisted,
            Store,
            Cancelled,
            Configuration,
            Advisor,
            Unknown,
        ]);
        kinds
    }

    fn written(error: &Error) -> Value {
        serde_json::to_value(error).unwrap()
    }

    #[test]
    fn every_kind_comes_back_under_its_word() {
        for kind in kinds() {
            for error in [Error::new(kind, "it fails"), Error::new(kind, "it fails").mark_emitted()] {
                let json = written(&error);
                assert_eq!(json["kind"], kind.as_str());
                let read: Error = serde_json::from_value(json).unwrap();
                assert_eq!(
                    (read.kind(), read.to_string(), read.emitted()),
                    (kind, "it fails".into(), error.emitted())
                );
            }
        }
    }

    #[test]
    fn absent_data_takes_no_room() {
        let limited = |retry_after| Error::new(ErrorKind::RateLimited { retry_after }, "wait");
        assert_eq!(written(&limited(None)), json!({"kind": "rate_limited", "message": "wait"}));
        assert_eq!(
            written(&limited(Some(Duration::from_micros(1_500_001))).mark_emitted()),
            json!({"kind": "rate_limited", "retry_after_ms": 1501, "message": "wait", "emitted": true})
        );
    }

    #[test]
    fn unknown_kinds_and_fields_are_read() {
        let json = json!({"kind": "of_a_later_version", "quota": {"left": 0}, "message": "wait"});
        let error: Error = serde_json::from_value(json).unwrap();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unknown, false));
        assert!(serde_json::from_value::<Error>(json!({"message": "no kind"})).is_err());
        for json in
            [json!({"kind": "approval"}), json!({"kind": "approval", "problem": "of_a_later_version"})]
        {
            let kind = serde_json::from_value::<ErrorKind>(json).unwrap();
            assert_eq!(kind, ErrorKind::Approval { problem: DecisionProblem::Unknown });
        }
    }

    #[test]
    fn law_r3_json_has_neither_content_nor_causes() {
        let error = Error::new(ErrorKind::Connection, "the server cannot be reached")
            .with_source("canary in a cause")
            .or_partial(ChatResponse::from("canary in the answer"))
            .or_history(vec![message_aggregator::Message::user("canary in the history")].into());
        assert!(!written(&error).to_string().contains("canary"));
    }
}
