//! rig's agent, which runs the tools itself.

use std::convert::Infallible;

use futures::StreamExt;
use peer_measure::{Peer, weather};
use rig::agent::MultiTurnStreamItem;
use rig::prelude::*;
use rig::providers::openai::OpenAIConfig;
use rig::streaming::{Item, StreamEvent};
use rig::tool::{Tool, ToolContext};
use serde::Deserialize;
use serde_json::Value;

/// More rounds than any scenario has.
const ROUNDS: usize = 100_000;

#[derive(Clone)]
struct RigAgent {
    config: OpenAIConfig,
    tools: bool,
}

impl Peer for RigAgent {
    fn new(address: &str, tools: bool) -> Self {
        Self { config: OpenAIConfig::new("none").with_base_url(address), tools }
    }

    async fn turn(&self, mut on_text: impl AsyncFnMut(&str)) -> u64 {
        let model = self.config.clone().client().chat("gpt-4o-mini");
        let agent = if self.tools {
            AgentBuilder::new(model).tool(Weather).build()
        } else {
            AgentBuilder::new(model).build()
        };
        let mut requests = 0;
        let mut stream = agent.prompt("What now?").max_turns(ROUNDS).stream();
        while let Some(item) = stream.next().await {
            match item.expect("the answer goes on") {
                MultiTurnStreamItem::StreamAssistantItem(Item::Event(StreamEvent::Text { text, .. }))
                    if !text.is_empty() =>
                {
                    on_text(&text).await;
                }
                MultiTurnStreamItem::CompletionCall(_) => requests += 1,
                _ => {}
            }
        }
        requests
    }
}

#[derive(Clone)]
struct Weather;

#[derive(Deserialize)]
struct Arguments {
    city: String,
}

impl Tool for Weather {
    const NAME: &'static str = weather::NAME;
    type Args = Arguments;
    type Output = String;
    type Error = Infallible;

    fn description(&self) -> String {
        weather::DESCRIPTION.to_owned()
    }

    fn parameters(&self) -> Value {
        weather::schema()
    }

    async fn call(&self, _: &mut ToolContext, arguments: Arguments) -> Result<String, Infallible> {
        Ok(weather::answer(&arguments.city).to_owned())
    }
}

fn main() {
    peer_measure::main::<RigAgent>();
}
