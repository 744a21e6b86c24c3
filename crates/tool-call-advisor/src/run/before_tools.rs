//! `LoopRun::decide_calls`: the policy and the hook decide about each call that could run.

use advisor_core::Result;

use crate::CallDecision;
use crate::plan::ToolPlan;
use crate::run::LoopRun;

impl LoopRun {
    /// Asks the policy about each call that could run, then the hook about those that it does not deny. In call order, before
    /// any tool of the round starts. A call that the policy leaves to a person stays so, unless the hook denies it.
    pub(super) async fn decide_calls(&self, plan: &mut ToolPlan) -> Result<()> {
        let config = &self.config;
        for planned in plan.undecided() {
            let by_policy = config.policy.as_ref().zip(planned.ready());
            let by_policy = by_policy.map(|(policy, call)| policy.decide(&call.call.name, &call.arguments));
            let is_left = by_policy == Some(CallDecision::Ask);
            if let Some(decision) = by_policy.filter(|_| !is_left) {
                planned.decide(decision, &config.schemas, config.leniency).await;
            }
            let Some(call) = planned.ready() else { continue };
            let decision = match config.hooks.before_tool(call, &self.request).await? {
                CallDecision::Run | CallDecision::RunWith(_) if is_left => CallDecision::Ask,
                decision => decision,
            };
            planned.decide(decision, &config.schemas, config.leniency).await;
        }
        plan.leave_repeated();
        Ok(())
    }
}
