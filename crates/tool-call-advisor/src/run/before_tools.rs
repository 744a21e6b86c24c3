use advisor_core::Result;

use crate::plan::ToolPlan;
use crate::run::LoopRun;

impl LoopRun {
    /// Asks the policy about each call that could run, then the hook about those that still could. In call order, before
    /// any tool of the round starts.
    pub(super) async fn decide_calls(&self, plan: &mut ToolPlan) -> Result<()> {
        let config = &self.config;
        for planned in plan.undecided() {
            let by_policy = config.policy.as_ref().zip(planned.ready());
            let by_policy = by_policy.map(|(policy, call)| policy.decide(&call.call.name, &call.arguments));
            if let Some(decision) = by_policy {
                planned.decide(decision, &config.schemas, config.leniency).await;
            }
            let Some(call) = planned.ready() else { continue };
            let decision = config.hooks.before_tool(call, &self.request).await?;
            planned.decide(decision, &config.schemas, config.leniency).await;
        }
        plan.leave_repeated();
        Ok(())
    }
}
