//! This project's chain: five advisors, of which one is memory and four look at every chunk, and the tool loop.

use advisor_chain::tools::ToolLimits;
use advisor_chain::{
    AdvisorChain, ChatClient, ChatMemoryAdvisor, ChatRequest, Chunk, FnTool, InMemoryStore, OpenAiModel,
    StreamAdvisor, ToolCallAdvisor, ToolDefinition, TurnId, from_fn,
};
use futures::StreamExt;
use peer_measure::{Peer, weather};
use serde_json::Value;

/// Advisors beside memory that look at every chunk; with memory they are five.
const LOOKING: usize = 4;

#[derive(Clone)]
struct Ours(ChatClient);

impl Peer for Ours {
    fn new(address: &str, tools: bool) -> Self {
        let model = OpenAiModel::new("gpt-4o-mini").with_base_url(address).with_api_key("none");
        let mut client = advisor_chain::client(model)
            .advisor(ToolCallAdvisor::builder().limits(unlimited()).build().expect("a loop"))
            .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()));
        for index in 0..LOOKING {
            client = client.advisor(looking(index));
        }
        if tools {
            client = client.tool(weather_tool());
        }
        Self(client.build().expect("a chain"))
    }

    async fn turn(&self, mut on_text: impl AsyncFnMut(&str)) -> u64 {
        // Each turn is a conversation of its own, as its peers' are.
        let turn = TurnId::random();
        let mut stream =
            self.0.prompt().user("What now?").conversation(turn.to_string().as_str()).turn(turn).stream();
        let mut rounds = 0;
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.expect("the answer goes on");
            match &chunk {
                Chunk::RoundCompleted(_) | Chunk::Completed(_) => rounds += 1,
                _ => {}
            }
            if let Some(text) = chunk.text() {
                on_text(text).await;
            }
        }
        rounds
    }
}

/// An advisor that looks at every chunk.
fn looking(index: usize) -> impl StreamAdvisor {
    from_fn(format!("looking-{index}"), |request: ChatRequest, next: AdvisorChain| async move {
        let mut bytes = 0_usize;
        Ok(next.next_stream(request).await?.inspect_chunks(move |chunk: &Chunk| {
            bytes += chunk.text().map_or(0, str::len);
            std::hint::black_box(bytes);
        }))
    })
}

fn weather_tool() -> FnTool {
    let definition = ToolDefinition::new(weather::NAME, weather::DESCRIPTION, weather::schema());
    FnTool::new(definition, |arguments: Value| async move {
        Ok(weather::answer(arguments["city"].as_str().unwrap_or_default()))
    })
}

fn unlimited() -> ToolLimits {
    ToolLimits {
        rounds: Some(u32::MAX),
        calls: Some(u32::MAX),
        calls_per_tool: Some(u32::MAX),
        same_calls: None,
        ..ToolLimits::default()
    }
}

fn main() {
    peer_measure::main::<Ours>();
}
