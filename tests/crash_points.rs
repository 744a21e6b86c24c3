#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::io::Write as _;
use std::time::Instant;

use advisor_chain::{InMemoryStore, Phase, ToolCallStreaming};
use advisor_testkit::crash::{CrashDriver, Leaves, Mishap, Scenario};

fn driver(scenario: Scenario, memory: Phase, mode: ToolCallStreaming) -> CrashDriver {
    CrashDriver::new(scenario, InMemoryStore::new(), move |leaves: &Leaves| {
        let tool_loop = leaves.tool_loop().streaming(mode).build()?;
        leaves.client().advisor(tool_loop).advisor_in(memory, leaves.memory()).build()
    })
}

#[tokio::test]
async fn probe() {
    for memory in [Phase::Round, Phase::Turn] {
        for scenario in Scenario::ALL {
            let start = Instant::now();
            let mut driver = driver(scenario, memory, ToolCallStreaming::TextOnly);
            let points = driver.places().await.len();
            let cases = driver.every_point(&Mishap::ALL).await;
            let _ = writeln!(std::io::stderr(), "{scenario:?} {memory:?} {points} points {cases} cases {:?}", start.elapsed());
        }
    }
}
