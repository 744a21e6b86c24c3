//! `LoopRun::announce_starts`: refuses calls started before and records starts of at-most-once calls.

use advisor_core::{OUTCOME_UNKNOWN, Record, Result, StartedCalls, Step, VERIFY_BEFORE_RETRYING};

use crate::plan::{PlannedCall, ToolPlan};
use crate::run::LoopRun;

/// Calls that must not run twice.
impl LoopRun {
    /// Refuses the calls of a plan that were started before. Records the starts of the others whose tools must not
    /// run twice.
    ///
    /// # Errors
    /// Returns the error of the first recorder that fails. No tool may run then.
    pub(super) async fn announce_starts(&self, plan: &mut ToolPlan) -> Result<()> {
        let turn = &self.request.turn;
        if let Some(known) = turn.extensions().get() {
            plan.refuse(|planned| refusal(planned, &known));
        }
        let starts = plan.starts();
        if starts.is_empty() {
            return Ok(());
        }
        let record = Record::new(plan.answer.round(), Step::Started(starts.clone()), Vec::new());
        turn.record(&record).await?;
        // A recorder may have added starts that only it knew.
        if let Some(known) = turn.extensions().get() {
            plan.refuse(|planned| refusal(planned, &known));
        }
        turn.extensions().update(|started: &mut StartedCalls| {
            starts.into_iter().for_each(|start| started.note(start.key))
        });
        Ok(())
    }
}

/// Returns the reason why a call that no limit denies is not run: it was, or may have been, started before.
fn refusal(planned: &PlannedCall, known: &StartedCalls) -> Option<&'static str> {
    if planned.is_tried() && known.contains(planned.key()) {
        return Some(VERIFY_BEFORE_RETRYING);
    }
    let silent = planned.runs() && planned.effect().is_none() && known.is_repeated(planned.key().round);
    silent.then_some(OUTCOME_UNKNOWN)
}
