//! Decisions about calls before they run: by a hook, or by a policy as data.

pub(crate) mod policy;

use std::fmt;

use advisor_core::Text;
use serde_json::Value;

/// The decision about a call that could run.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum CallDecision {
    /// The call runs.
    Run,
    /// The call runs with these arguments, which must fit the schema of the tool.
    ///
    /// The call is stored and sent as the model wrote it. Its events show these arguments, and its result begins with a
    /// sentence that names them, so that the model knows them.
    RunWith(Value),
    /// The call does not run. The model reads this reason.
    Deny(Text),
    /// The call is left to the caller, such as for an approval: the turn ends after the other calls have run.
    Ask,
}

impl fmt::Debug for CallDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and reasons are content and must not be logged.
        f.write_str(match self {
            Self::Run => "Run",
            Self::RunWith(_) => "RunWith(…)",
            Self::Deny(_) => "Deny(…)",
            Self::Ask => "Ask",
        })
    }
}
