//! The demonstration that answers without a key.

use std::iter;
use std::time::Duration;

use advisor_chain::messages::{Delta, MessageAggregator, ToolCallDelta};
use advisor_chain::{ChatModel, ChatRequest, ChunkStream, FinishReason, Message, Result, Role, async_trait};
use futures::{StreamExt, stream};

/// The time between two words, as a model takes it.
const PACE: Duration = Duration::from_millis(40);

/// A model that knows a few answers. It is no language model: it shows how text, reasoning and tools stream.
pub(crate) struct DemoModel;

#[async_trait]
impl ChatModel for DemoModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let deltas = stream::iter(answer(&request)).then(|delta| async {
            tokio::time::sleep(PACE).await;
            Ok(delta)
        });
        Ok(ChunkStream::from_deltas(MessageAggregator::new(request.round), deltas))
    }
}

/// Returns the pieces of the answer.
fn answer(request: &ChatRequest) -> Vec<Delta> {
    let messages: Vec<&Message> = request.messages.iter().collect();
    let results: Vec<String> = messages
        .iter()
        .rev()
        .map_while(|message| message.tool_result())
        .map(|result| result.text())
        .collect();
    let asked = request.last_user().map(|message| message.text().to_lowercase()).unwrap_or_default();
    let turns = messages.iter().filter(|message| message.role() == Role::User).count();
    if !results.is_empty() {
        let results: String = results.iter().rev().map(|result| format!("\n- {result}")).collect();
        return text(&format!(
            "This is what the tools say:{results}\n\nThe weather is made up; the time is real."
        ));
    }
    if asked.contains("weather") {
        let call = |index, city: &str| {
            let start = ToolCallDelta::start(index, format!("call_{turns}_{index}"), "demo_weather");
            let arguments = format!("{{\"city\": \"{city}\"}}");
            let pieces = words(&arguments).map(|piece| ToolCallDelta::arguments(index, piece));
            iter::once(start).chain(pieces.collect::<Vec<_>>()).map(Delta::tool_call)
        };
        let mut deltas = thought("The user asks for the weather. I ask for two cities at once.");
        deltas.extend(words("Let me look at Oslo and Lima.").map(Delta::text));
        deltas.extend(call(0, "Oslo").chain(call(1, "Lima")));
        deltas.extend([Delta::finish(FinishReason::ToolCalls), Delta::done()]);
        return deltas;
    }
    if asked.contains("time") {
        let call = ToolCallDelta::start(0, format!("call_{turns}"), "current_time").with_arguments("{}");
        return vec![Delta::tool_call(call), Delta::finish(FinishReason::ToolCalls), Delta::done()];
    }
    text(&format!(
        "I am a demonstration without a language model. This is message {turns} of the conversation, so memory works. \
         Ask me about the weather to see two tools run at once, or about the time.\n\nYou wrote: {asked}"
    ))
}

fn text(text: &str) -> Vec<Delta> {
    words(text).map(Delta::text).chain([Delta::finish(FinishReason::Stop), Delta::done()]).collect()
}

fn thought(text: &str) -> Vec<Delta> {
    words(text).map(Delta::reasoning).collect()
}

/// Returns the words, each with the space behind it.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive(' ').map(String::from)
}
