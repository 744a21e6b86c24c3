//! `SetupError`, and the conversion of the driver's errors to store errors.

use advisor_core::{BoxError, Error};
use conversation_store::StoreError;
use redis::{ErrorKind, RedisError};

/// The server's error code. The rest of its message may quote keys and values.
#[derive(Debug, thiserror::Error)]
#[error("the server says {code}: {meaning}")]
struct Refusal {
    code: String,
    meaning: &'static str,
}

/// The known error codes: the code, its meaning, and whether a retry may succeed later.
const REFUSALS: &[(&str, &str, bool)] = &[
    ("LOADING", "it is reading its data after a start", true),
    ("BUSY", "a script has been running for too long", true),
    ("MASTERDOWN", "it is a replica that has lost its primary", true),
    ("READONLY", "it is a replica; connect to the primary", true),
    ("NOREPLICAS", "it has fewer replicas than `min-replicas-to-write` requires", true),
    ("OOM", "its memory is full, up to `maxmemory`", true),
    ("MISCONF", "it cannot write its data to the disk", true),
    ("CLUSTERDOWN", "the cluster does not serve all of its slots", true),
    ("TRYAGAIN", "the slot is being moved to another node", true),
    ("ASK", "the slot is being moved to another node", true),
    (
        "MOVED",
        "it is a node of a cluster; pass a cluster connection to `RedisServer::from_connection`",
        false,
    ),
    ("CROSSSLOT", "keys of one conversation are in several slots", false),
    ("NOSCRIPT", "it forgot the script right after it was sent", true),
    ("NOAUTH", "a password is needed", false),
    ("WRONGPASS", "the user or the password is wrong", false),
    ("NOPERM", "the user may not run this; scripts and their commands are needed", false),
    ("WRONGTYPE", "a key of the store holds something of another type", false),
];

/// Converts the error of getting a connection. Nothing was sent.
pub(crate) fn before_sending(error: &RedisError) -> StoreError {
    let passing = match error.code() {
        Some("ERR") => error.detail().is_some_and(|detail| detail.starts_with("max number of clients")),
        Some(code) => may_pass(code),
        None => !matches!(
            error.kind(),
            ErrorKind::AuthenticationFailed
                | ErrorKind::Client
                | ErrorKind::InvalidClientConfig
                | ErrorKind::RESP3NotSupported
        ),
    };
    StoreError::Unavailable { retryable: passing, source: Some(reason(error)) }
}

/// Converts the error of a script that was sent. The server refuses a script before it writes anything.
pub(crate) fn from_script(error: &RedisError) -> StoreError {
    match error.code() {
        Some(code) => StoreError::Unavailable { retryable: may_pass(code), source: Some(reason(error)) },
        None => StoreError::outcome_unknown(reason(error)),
    }
}

/// Converts the error of a script that the connection may have sent more than once. A final refusal concerns only
/// the last attempt.
pub(crate) fn from_repeated_script(error: &RedisError) -> StoreError {
    match from_script(error) {
        StoreError::Unavailable { retryable: true, source } => StoreError::OutcomeUnknown { source },
        error => error,
    }
}

/// Converts the error of a script that only reads: nothing was written in any case.
pub(crate) fn from_reading(error: StoreError) -> StoreError {
    match error {
        StoreError::OutcomeUnknown { source } => StoreError::Unavailable { retryable: true, source },
        error => error,
    }
}

/// Converts the error of a script that ran after another one had written: the operation was done in part.
pub(crate) fn after_writing(error: StoreError) -> StoreError {
    match error {
        StoreError::Unavailable { source, .. } => StoreError::OutcomeUnknown { source },
        error => error,
    }
}

/// Creates the error of a failure that a retry does not resolve.
pub(crate) fn lasting(source: impl Into<BoxError>) -> StoreError {
    StoreError::Unavailable { retryable: false, source: Some(source.into()) }
}

/// Returns whether the connection is unusable after this error.
pub(crate) fn ends_connection(error: &RedisError) -> bool {
    // A replica stays read-only for the life of the connection; a new connection may reach the primary.
    error.code().is_none_or(|code| code == "READONLY")
}

fn may_pass(code: &str) -> bool {
    REFUSALS.iter().any(|(known, _, passing)| *known == code && *passing)
}

/// Returns the cause without the driver's message, which may quote an address, keys or values.
fn reason(error: &RedisError) -> BoxError {
    if let Some(code) = error.code() {
        let known = REFUSALS.iter().find(|(known, ..)| *known == code);
        let meaning = known.map_or("see its log and its documentation", |(_, meaning, _)| *meaning);
        return Refusal { code: code.into(), meaning }.into();
    }
    let what = match error.kind() {
        ErrorKind::Io if error.is_timeout() => "the server did not answer in time",
        ErrorKind::Io if error.is_connection_refusal() => "the server refuses connections",
        ErrorKind::Io if error.is_connection_dropped() => "the connection was lost",
        ErrorKind::Io => "the server cannot be reached",
        ErrorKind::AuthenticationFailed => "the user or the password is wrong",
        ErrorKind::RESP3NotSupported => "the server does not speak RESP3; Redis does since version 6",
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => "the server's answer cannot be read",
        ErrorKind::ClusterConnectionNotFound => "no node of the cluster serves the slot",
        _ => "the driver cannot send this",
    };
    what.into()
}

/// The reason why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The address cannot be parsed. It is not repeated here, since it may contain a password.
    #[error("the address of the server cannot be read; write it as redis://user:password@host:port/number")]
    Address,
    /// The address requires TLS, which this build does not support.
    #[error(
        "the address asks for TLS; turn on the feature `native-tls`, or a TLS feature of the crate `redis`"
    )]
    NeedsTls,
    /// The prefix is not allowed.
    #[error("a prefix of keys has 1 to 64 characters of A-Z, a-z, 0-9, `-`, `_`, `.` and `:`")]
    Prefix,
    /// The server cannot be used, or refused the probe.
    #[error("the server could not be used")]
    Store(#[from] StoreError),
}

impl From<SetupError> for Error {
    fn from(error: SetupError) -> Self {
        Self::new(advisor_core::ErrorKind::Store, error.to_string()).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> RedisError {
        let answer = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
        answer.extract_error().unwrap_err()
    }

    #[test]
    fn each_refusal_reports_retryability_and_quotes_nothing() {
        let refusals = [
            ("LOADING Redis is loading the dataset in memory", true),
            ("BUSY Redis is busy running a script. You can only call SCRIPT KILL", true),
            ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", true),
            ("READONLY You can't write against a read only replica. script: secret", true),
            ("NOREPLICAS Not enough good replicas to write.", true),
            ("OOM command not allowed when used memory > 'maxmemory'. script: secret", true),
            ("MISCONF Redis is configured to save RDB snapshots: secret", true),
            ("CLUSTERDOWN The cluster is down", true),
            ("TRYAGAIN Multiple keys request during rehashing of slot", true),
            ("ASK 3999 secret:6381", true),
            ("MOVED 3999 secret:6381", false),
            ("CROSSSLOT Keys in request don't hash to the same slot", false),
            ("NOSCRIPT No matching script. Please use EVAL.", true),
            ("NOAUTH Authentication required.", false),
            ("WRONGPASS invalid username-password pair or user is disabled.", false),
            ("NOPERM User secret has no permissions to run the 'evalsha' command", false),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", false),
            ("ERR unknown command 'EVALSHA', with args beginning with: 'secret'", false),
            ("UNHEARDOF secret", false),
        ];
        for (line, passing) in refusals {
            for error in [from_script(&said(line)), before_sending(&said(line))] {
                let shown = format!("{error:?}");
                assert!(
                    matches!(error, StoreError::Unavailable { retryable, .. } if retryable == passing),
                    "{shown}"
                );
                assert!(
                    shown.contains(line.split(' ').next().unwrap()) && !shown.contains("secret"),
                    "{shown}"
                );
            }
            let repeated = from_repeated_script(&said(line));
            assert_eq!(matches!(repeated, StoreError::OutcomeUnknown { .. }), passing, "{repeated:?}");
        }
    }

    #[test]
    fn lost_connection_makes_only_sent_scripts_unknown() {
        let lost = RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert!(matches!(from_script(&lost), StoreError::OutcomeUnknown { .. }));
        assert!(matches!(before_sending(&lost), StoreError::Unavailable { retryable: true, .. }));
        assert!(matches!(from_reading(from_script(&lost)), StoreError::Unavailable { retryable: true, .. }));
        assert!(ends_connection(&lost) && !ends_connection(&said("OOM full")));
        assert!(ends_connection(&said("READONLY replica")));
        let full = before_sending(&said("ERR max number of clients reached"));
        assert!(matches!(full, StoreError::Unavailable { retryable: true, .. }), "{full:?}");
    }
}
