//! An advisor that holds a permit for each turn, and gives it back at every end.

use advisor_chain::{Advisor, AdvisorInfo, ChatRequest, ChatResponse, Result, async_trait};
use advisor_testkit::Journal;

/// Given back when it is dropped: after an answer, after an error, after a drop of the turn.
#[derive(Debug)]
pub struct Permit(Journal);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.record("permit given back");
    }
}

/// Takes a permit for each turn.
#[derive(Debug)]
pub struct Permits(pub Journal);

impl AdvisorInfo for Permits {
    fn name(&self) -> &str {
        "permits"
    }
}

#[async_trait]
impl Advisor for Permits {
    type State = Permit;

    async fn before(&self, request: ChatRequest) -> Result<(ChatRequest, Permit)> {
        self.0.record("permit taken");
        Ok((request, Permit(self.0.clone())))
    }

    async fn after(&self, _permit: Permit, _response: &ChatResponse) -> Result<()> {
        Ok(())
    }
}
