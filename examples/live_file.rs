//! Shows the content of a file while the model generates it, before its call is complete and the tool runs.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;

use advisor_chain::messages::{Delta, ToolCallDelta};
use advisor_chain::text_tool_calls::segments::{SegmentEvent, SegmentEventType, SegmentHandler, SegmentType};
use advisor_chain::text_tool_calls::{TextTools, ToolCallFormat, ToolForm};
use advisor_chain::tools::ToolCallStreaming;
use advisor_chain::{ChatClient, FinishReason, FnTool, ToolCallAdvisor, ToolDefinition};
use advisor_testkit::{Answer, ScriptedModel};
use futures::StreamExt;
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let schema = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    });
    let definition = ToolDefinition::new("save", "Saves a file.", schema);
    // The content of this tool's segments is one argument, decoded; a segment starts once its path is known.
    let form = ToolForm::new("save", "content").with_verbatim_body("", "").with_required("path");
    let mut handler =
        SegmentHandler::new(ToolCallFormat::Api, &TextTools::new([&definition]).with_form(form));

    let save = FnTool::new(definition, |arguments: Value| async move {
        println!("[the tool runs with {arguments}]");
        Ok("saved".to_owned())
    });
    // The arguments arrive as a model sends them: in pieces that end anywhere, also within an escape.
    let pieces =
        [r#"{"pa"#, r#"th": "poem.txt", "content": "Snow on the \"#, r#"nfjord,\nlight \u00"#, r#"e0 la"}"#];
    let delta = |delta| Delta::tool_call(delta);
    let call = Answer::new().delta(delta(ToolCallDelta::start(0, "c1", "save")));
    let call = pieces.iter().fold(call, |call, piece| call.delta(delta(ToolCallDelta::arguments(0, *piece))));
    let model = ScriptedModel::new([call.finish(FinishReason::ToolCalls), Answer::from_text("It is saved.")]);

    // Calls are in the stream in the mode `All`.
    let tool_loop = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build()?;
    let client = ChatClient::builder(model).advisor(tool_loop).tool(save).build()?;
    let mut turn = client.prompt().user("Write a poem about snow.").stream();
    while let Some(chunk) = turn.next().await {
        handler.feed(&chunk?)?.iter().for_each(show);
    }
    handler.finalize()?.iter().for_each(show);
    Ok(())
}

/// Shows an event, as an editor would: a file opens, grows and is complete.
fn show(event: &SegmentEvent) {
    match (event.event_type, &event.segment_type) {
        (SegmentEventType::Start, Some(SegmentType::Text)) => println!("--- answer"),
        (SegmentEventType::Start, _) => println!("--- {}", json!(event.payload.metadata)),
        (SegmentEventType::Content, _) => println!("{:?}", event.payload.delta),
        (SegmentEventType::End, _) => println!("---"),
    }
}
