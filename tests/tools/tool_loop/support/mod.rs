//! Shared parts of the tests of the loop: running a turn to its end, tools, recorders and observed hooks.

mod ledger;
mod stages;
mod staging;

pub(crate) use advisor_tests::lines::{assert_valid, transcript_lines};
pub(crate) use advisor_tests::reading::{Reader, Run, in_time, read};
pub(crate) use advisor_tests::tools::{definition, invoked, tool};
pub(crate) use ledger::Ledger;
pub(crate) use stages::{Denying, Staged, Stages, Watch};
pub(crate) use staging::{staged, staged_in};

use advisor_chain::chain::TurnResponse;
use advisor_tests::prelude::*;

/// Creates a client around `model` with this loop. The model is shared, so its requests can be read.
pub(crate) fn client(model: &ScriptedModel, advisor: ToolCallAdvisor) -> ChatClientBuilder {
    ChatClient::builder(model.clone()).advisor(advisor)
}

/// A loop that streams in this mode.
pub(crate) fn streaming(mode: ToolCallStreaming) -> ToolCallAdvisor {
    ToolCallAdvisor::builder().streaming(mode).build().unwrap()
}

/// A loop with these bounds.
pub(crate) fn limited(limits: ToolLimits) -> ToolCallAdvisor {
    ToolCallAdvisor::builder().limits(limits).build().unwrap()
}

/// The bound that a turn ended with.
#[track_caller]
pub(crate) fn limit_of(run: &Run) -> Limit {
    match &run.response().finish.reason {
        FinishReason::Limit(limit) => limit.clone(),
        other => panic!("the turn ended with {other:?} instead of a limit"),
    }
}

/// Runs a turn of this client to its end.
pub(crate) async fn go(client: ChatClientBuilder) -> Run {
    read(client.build().unwrap().prompt().user("go").stream()).await
}

/// Calls this client once.
pub(crate) async fn response_of(client: ChatClientBuilder) -> TurnResponse {
    client.build().unwrap().prompt().user("go").call().await.unwrap()
}

/// Returns the result of one call of the only tool, which the model asks for with these arguments.
pub(crate) async fn result_of(tool: FnTool, arguments: &str) -> ToolResult {
    let name = tool.definition().name.to_string();
    let model =
        ScriptedModel::new([Answer::from_calls([("c1", &*name, arguments)]), Answer::from_text("Done.")]);
    let client = client(&model, ToolCallAdvisor::new()).tool(tool).build().unwrap();
    let response = client.prompt().user("go").call().await.unwrap();
    response.transcript.iter().find_map(Message::tool_result).unwrap().clone()
}
