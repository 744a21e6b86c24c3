//! An advisor with a state of its own for each request, from before it to after its answer.

use std::time::Instant;

use advisor_chain::{Advisor, AdvisorInfo, ChatRequest, ChatResponse, Result, async_trait};

/// Prints the time of each answer.
#[derive(Debug)]
pub struct Stopwatch;

impl AdvisorInfo for Stopwatch {
    fn name(&self) -> &str {
        "stopwatch"
    }
}

#[async_trait]
impl Advisor for Stopwatch {
    type State = Instant;

    async fn before(&self, request: ChatRequest) -> Result<(ChatRequest, Instant)> {
        Ok((request, Instant::now()))
    }

    async fn after(&self, started: Instant, response: &ChatResponse) -> Result<()> {
        eprintln!("round {} took {:?}", response.round(), started.elapsed());
        Ok(())
    }
}
