//! Recorded provider streams as test material.
//!
//! A directory of recordings holds an `index.json`, whose `files` each have `file`, `provider` and `api`.
//! Beside each `NAME.sse` or `NAME.jsonl` is a `NAME.expected.json` with the result of a correct reader.
//! Optional are a `NAME.request.json` (the request) and a `NAME.transport.json` (where the network cut the
//! body).
//!
//! The recordings are not part of this crate. They are read from the directory in the environment variable
//! `ADVISOR_RECORDINGS`, or else from the nearest `shared/recordings` beside or above the package under test.
//! Without them [`all`] reports that and returns an empty list, so a test over them passes. With
//! `ADVISOR_REQUIRE_RECORDINGS=1` it fails instead.
//!
//! ```
//! use advisor_test_support::recordings;
//!
//! for recording in recordings::all("openai-chat") {
//!     let got = recording.expected.clone(); // in place of the result of the program under test
//!     let differences = recording.differences(&got);
//!     assert!(differences.is_empty() || recording.observed_calls_by_id().is_some());
//! }
//! ```

mod differences;
mod find;
mod load;
mod read;
mod replayed;
#[cfg(test)]
mod tests;

pub use differences::{differences, observed_differences};
pub use load::load;
pub use read::{
    assert_expected, assert_same_at_random_splits, assert_same_byte_by_byte, assert_same_without_repeats,
};
pub use replayed::{assert_replays, outcome};

use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// One recorded stream and its expected result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recording {
    /// The file's name without its extension.
    pub name: String,
    /// `openai-chat`, `anthropic-messages` and so on.
    pub api: String,
    /// The provider that sent it.
    pub provider: String,
    /// The body as it is on the wire. One that was recorded without its framing (`.jsonl`) is framed again as
    /// server-sent events. Each has `event:` with the payload's `type` if there is one. If the API is
    /// `openai-chat`, `data: [DONE]` is at the end.
    pub body: Vec<u8>,
    /// The result of a correct reader of the body.
    pub expected: Value,
    /// Offsets in `body` at which the network's chunks ended, if the recorder kept them.
    pub chunk_ends: Vec<usize>,
}

impl Recording {
    /// Returns the differences between `got` and the expected result, in words; empty if they agree. See
    /// [`differences`].
    ///
    /// If readers disagree on the calls and the expectation lists those [observed](Self::observed_calls_by_id),
    /// they are compared too.
    pub fn differences(&self, got: &Value) -> Vec<String> {
        let mut found = differences(&self.expected, got);
        if let Some(observed) = self.observed_calls_by_id() {
            found.extend(observed_differences(observed, got));
        }
        found
    }

    /// Returns the calls that a person reads in the stream, each with `id`, `name` and `arguments`, if the
    /// expectation lists them.
    pub fn observed_calls_by_id(&self) -> Option<&[Value]> {
        let calls = self.expected.get("observed_calls_by_id")?.as_array()?;
        Some(calls)
    }
}

/// The recordings of one API.
#[derive(Clone, Debug, Default)]
pub struct Recordings {
    directory: Option<PathBuf>,
    recordings: Vec<Recording>,
}

impl Recordings {
    /// Returns the directory of the recordings; `None` if this machine has none.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Returns the number of recordings.
    pub fn len(&self) -> usize {
        self.recordings.len()
    }

    /// Checks whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.recordings.is_empty()
    }

    /// Returns the recording of this name.
    pub fn named(&self, name: &str) -> Option<&Recording> {
        self.iter().find(|recording| recording.name == name)
    }

    /// Returns the recordings in the order of the index.
    pub fn iter(&self) -> std::slice::Iter<'_, Recording> {
        self.recordings.iter()
    }
}

impl IntoIterator for Recordings {
    type Item = Recording;
    type IntoIter = std::vec::IntoIter<Recording>;

    fn into_iter(self) -> Self::IntoIter {
        self.recordings.into_iter()
    }
}

impl<'a> IntoIterator for &'a Recordings {
    type Item = &'a Recording;
    type IntoIter = std::slice::Iter<'a, Recording>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Returns the recordings of `api` on this machine, for a test.
///
/// If there are none, one line on standard error reports it and the list is empty.
///
/// # Panics
///
/// If `ADVISOR_REQUIRE_RECORDINGS` is `1` and there are none, if `ADVISOR_RECORDINGS` names a directory without
/// an `index.json`, or if a listed file cannot be read. [`load`] returns an error instead.
#[allow(clippy::panic, reason = "this is the entry for tests: a missing or broken recording has to be seen")]
#[track_caller]
pub fn all(api: &str) -> Recordings {
    let directory = match find::directory() {
        Ok(Some(directory)) => directory,
        Ok(None) if find::required() => panic!("{} and {}=1", find::ABSENT, find::REQUIRE),
        Ok(None) => {
            // Not `eprintln!`, whose output the test harness hides when the test passes.
            let _ = writeln!(std::io::stderr(), "left out: {}: nothing of {api} is replayed", find::ABSENT);
            return Recordings::default();
        }
        Err(problem) => panic!("{problem}"),
    };
    match load(&directory, api) {
        Ok(recordings) if recordings.is_empty() && find::required() => {
            panic!("no recordings of {api} in {}", directory.display())
        }
        Ok(recordings) => recordings,
        Err(problem) => panic!("recordings in {}: {problem}", directory.display()),
    }
}
