//! A turn whose every part is a stage.

use advisor_tests::prelude::*;

use super::{Ledger, Staged, Stages, Watch, definition};

/// A turn whose parts are all stages, and its records.
pub(crate) struct Staging {
    pub(crate) turn: TurnStream,
    pub(crate) model: ScriptedModel,
    pub(crate) ledger: Ledger,
}

/// Two rounds with one tool call, each part of which is a stage.
pub(crate) fn staged(stages: &Stages) -> Staging {
    staged_in(ToolCallStreaming::TextOnly, stages)
}

/// The same, streamed in this mode.
pub(crate) fn staged_in(mode: ToolCallStreaming, stages: &Stages) -> Staging {
    let model = ScriptedModel::new(answers(stages));
    let ledger = Ledger::at(stages);
    let client = ChatClient::builder(model.clone())
        .advisor(outer(stages))
        .advisor(ledger.clone())
        .advisor(ToolCallAdvisor::builder().streaming(mode).hooks(Watch(stages.clone())).build().unwrap())
        .advisor(Staged::new(stages))
        .advisor(opening(stages))
        .tool(look(stages))
        .build()
        .unwrap();
    Staging { turn: client.prompt().user("How is it?").stream(), model, ledger }
}

/// Stages `text 1`, `arguments 1`, `text 2`.
fn answers(stages: &Stages) -> [Answer; 2] {
    let stage = |answer: Answer, stage: &'static str| {
        let waiting = stages.clone();
        let answer = answer.wait(async move { drop(waiting.at(stage).await) });
        if stages.fails(stage) { answer.error(stages.failure()) } else { answer }
    };
    let first = stage(Answer::new().text("Let me look."), "text 1").call("c1", "look", "{}");
    let first = stage(first, "arguments 1").finish(FinishReason::ToolCalls);
    let second = stage(Answer::new().text("It is "), "text 2").text("sunny.").finish(FinishReason::Stop);
    [first, second]
}

/// Stage `tool c1`.
fn look(stages: &Stages) -> FnTool {
    let stages = stages.clone();
    FnTool::with_invocation(definition("look"), move |invocation: ToolInvocation| {
        let stages = stages.clone();
        async move {
            let outcome = stages.at(&format!("tool {}", invocation.call.id)).await;
            outcome.map_err(|error| ToolError::new(error.to_string()))?;
            Ok(ToolOutput::from("sunny"))
        }
    })
}

/// Stages `open 1`, `open 2`: right before the model is asked.
fn opening(stages: &Stages) -> impl StreamAdvisor {
    let stages = stages.clone();
    from_fn("opening", move |request: ChatRequest, next: AdvisorChain| {
        let stages = stages.clone();
        async move {
            let rounds = request.messages.iter().filter(|message| message.tool_result().is_some()).count();
            stages.at(&format!("open {}", rounds + 1)).await?;
            next.next_stream(request).await
        }
    })
    .with_placement(Placement::new(Phase::ModelCall))
}

/// Stage `outer after 1`: outside the loop, when it is done.
fn outer(stages: &Stages) -> impl StreamAdvisor {
    let stages = stages.clone();
    from_fn("outer", move |request: ChatRequest, next: AdvisorChain| {
        let stages = stages.clone();
        async move {
            Ok(next.next_stream(request).await?.on_completed(move |response| async move {
                stages.at("outer after 1").await?;
                Ok(response)
            }))
        }
    })
}
