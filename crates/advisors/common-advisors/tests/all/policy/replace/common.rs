//! `replaced`: passes a text in pieces through a `ReplaceText`.

use advisor_core::FinishReason;
use common_advisors::policy::ReplaceText;

use crate::policy::pieces::{Shown, edited};

/// Passes a text in these pieces. A replacement ends no answer.
pub(crate) fn replaced(policy: &ReplaceText, pieces: &[&str]) -> Shown {
    let shown = edited(policy.clone(), pieces);
    assert_eq!(shown.reason, FinishReason::Stop);
    shown
}
