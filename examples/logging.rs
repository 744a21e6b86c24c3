//! An advisor that watches: the request on its way in, the answer when it is complete.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::time::Instant;

use advisor_chain::{Advisor, AdvisorInfo, ChatRequest, ChatResponse, Phase, Result, async_trait, client};
use advisor_testkit::{Answer, ScriptedModel};

struct Logging;

impl AdvisorInfo for Logging {
    fn name(&self) -> &str {
        "logging"
    }
}

#[async_trait]
impl Advisor for Logging {
    /// Goes from `before` to `after`; if the turn is dropped in between, it is dropped, too.
    type State = Instant;

    async fn before(&self, request: ChatRequest) -> Result<(ChatRequest, Instant)> {
        println!("-> {} messages, {} tools", request.messages.len(), request.tools.len());
        Ok((request, Instant::now()))
    }

    async fn after(&self, started: Instant, response: &ChatResponse) -> Result<()> {
        let usage = response.usage.and_then(|usage| usage.output_tokens).unwrap_or_default();
        let took = if started.elapsed().as_secs() < 5 { "quickly" } else { "slowly" };
        println!("<- {:?}, {usage} tokens, {took}", response.finish.reason);
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let model = ScriptedModel::new([Answer::from_text("It is Oslo.").usage(12, 4)]);
    let client = client(model)
        .advisor(Logging) // once per turn
        .advisor_in(Phase::ModelCall, Logging) // and again for each model call
        .build()?;
    println!("{}", client.explain());
    let response = client.prompt().user("What is the capital of Norway?").call().await?;
    println!("{}", response.text());
    Ok(())
}
