//! The parts of the demo that record their work in the journal.

use std::time::Duration;

use advisor_chain::tools::{ToolInvocation, ToolSet};
use advisor_chain::{AdvisorChain, ChatRequest, FnTool, StreamAdvisor, ToolDefinition, from_fn};
use advisor_testkit::Journal;
use serde_json::{Value, json};

/// Records when the model is asked, and when its answer is complete.
pub(crate) fn asking(journal: &Journal) -> impl StreamAdvisor {
    let journal = journal.clone();
    from_fn("journal", move |request: ChatRequest, next: AdvisorChain| {
        let journal = journal.clone();
        async move {
            journal.record(format!("request with {} messages", request.messages.len()));
            Ok(next.next_stream(request).await?.on_completed(move |response| async move {
                journal.record(format!("answer of round {} is complete", response.round()));
                Ok(response)
            }))
        }
    })
}

/// Returns the tools of the demo. Each takes a moment, so that the output shows that they run at the same time.
pub(crate) fn tools(journal: &Journal) -> ToolSet {
    ToolSet::new()
        .with(tool(journal, "get_weather", "Tells the weather in a city.", "city", |city| match city {
            "Tokyo" => "sunny, 24 °C",
            "London" => "rain, 13 °C",
            "Paris" => "dry, 19 °C",
            _ => "unknown",
        }))
        .with(tool(journal, "get_time", "Tells the time in a time zone.", "zone", |zone| match zone {
            "Asia/Tokyo" => "21:15",
            _ => "14:15",
        }))
        .with(tool(journal, "get_trains", "Tells how often trains go.", "to", |_| "every hour, 2 h 16 min"))
}

fn tool(
    journal: &Journal,
    name: &'static str,
    description: &'static str,
    parameter: &'static str,
    answer: fn(&str) -> &'static str,
) -> FnTool {
    let schema =
        json!({"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]});
    let journal = journal.clone();
    FnTool::with_invocation(
        ToolDefinition::new(name, description, schema),
        move |invocation: ToolInvocation| {
            let journal = journal.clone();
            async move {
                journal.record(format!("tool {} starts", invocation.call.id));
                tokio::time::sleep(Duration::from_millis(120)).await;
                journal.record(format!("tool {} ends", invocation.call.id));
                let asked = invocation.arguments.get(parameter).and_then(Value::as_str).unwrap_or_default();
                Ok(answer(asked).into())
            }
        },
    )
}
