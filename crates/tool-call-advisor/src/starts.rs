use advisor_core::{
    CallStart, Effect, OUTCOME_UNKNOWN, Record, Result, StartedCalls, Step, TurnId, VERIFY_BEFORE_RETRYING,
};

use crate::BatchCall;
use crate::loop_run::LoopRun;
use crate::run_call::can_start;
use crate::run_tools::ToolPlan;
use crate::schema::Schemas;

/// Calls that must not run twice.
impl LoopRun {
    /// Refuses the calls of a plan that were started before, and announces the others whose tools must not run twice.
    ///
    /// # Errors
    /// That of the first recorder that fails. No tool may run then.
    pub(crate) async fn announce_starts(&self, plan: &mut ToolPlan) -> Result<()> {
        let (turn, schemas) = (&self.request.turn, &self.config.schemas);
        if let Some(known) = turn.fact() {
            plan.refuse(turn.id(), |call| refusal(call, &known, schemas));
        }
        let starts = plan.starts(turn.id(), schemas);
        if starts.is_empty() {
            return Ok(());
        }
        let record = Record::new(plan.answer.round(), Step::Started(starts.clone()), Vec::new());
        turn.record(&record).await?;
        // A recorder may have known better.
        if let Some(known) = turn.fact() {
            plan.refuse(turn.id(), |call| refusal(call, &known, schemas));
        }
        turn.update(|started: &mut StartedCalls| {
            starts.into_iter().for_each(|start| started.note(start.key))
        });
        Ok(())
    }
}

impl ToolPlan {
    /// The calls that run and whose tools must not run twice, as far as they get to their tools.
    fn starts(&self, turn: &TurnId, schemas: &Schemas) -> Vec<CallStart> {
        let once = |call: &BatchCall| effect(call) == Some(Effect::AtMostOnce) && can_start(call, schemas);
        let calls = self.batch(turn).into_iter().filter(once);
        calls.map(|call| CallStart::new(call.key, call.call.id)).collect()
    }
}

/// Why a call is not run although no bound denies it, if so: it was started before, or may have been.
fn refusal(call: &BatchCall, known: &StartedCalls, schemas: &Schemas) -> Option<&'static str> {
    if known.contains(&call.key) {
        return Some(VERIFY_BEFORE_RETRYING);
    }
    let silent = known.is_repeated(call.key.round) && effect(call).is_none() && can_start(call, schemas);
    silent.then_some(OUTCOME_UNKNOWN)
}

fn effect(call: &BatchCall) -> Option<Effect> {
    call.tool.as_ref()?.definition().effect
}
