//! The requests for approvals with which a run ends, also those of an earlier run.

use super::AgUi;
use super::event::{Interrupt, Outcome};
use crate::shared::turn::ClientCall;
use crate::{ApprovalId, Approvals};

/// The requests for approvals with which a run ends.
impl AgUi {
    /// Asks the client for approvals of these calls: each is an interrupt of reason `tool_call`, whose answer has the payload
    /// `{approved, reason, editedArgs}`, with other arguments for an approved call. By default, it asks for none.
    #[must_use]
    pub fn with_approvals(self, approvals: Approvals) -> Self {
        Self { approvals: Some(approvals), ..self }
    }

    /// Asks again for the approval of a call of an earlier run, at the end of this one: it still waits.
    pub fn ask_again(&mut self, approval: &ApprovalId, tool: &str) {
        self.asked_again.push(Interrupt::new(approval, tool));
    }

    pub(super) fn outcome(&self, calls: &[ClientCall]) -> Option<Outcome> {
        let interrupt =
            |call: &ClientCall| Some(Interrupt::new(&self.approvals.as_ref()?.find(call)?, &call.call.name));
        let asked = calls.iter().filter_map(interrupt).chain(self.asked_again.iter().cloned());
        Outcome::new(asked.collect())
    }
}
