//! Tests that only tools which were offered to the model in a round can be called, whatever advisor added them.

use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

fn asks_for(name: &'static str) -> ScriptedModel {
    ScriptedModel::new([Answer::from_calls([("c1", name, "{}")]), Answer::from_text("Done.")])
}

/// An advisor that changes the tools of every request that passes.
fn changing(phase: Phase, change: fn(ToolSet) -> ToolSet) -> impl StreamAdvisor {
    from_fn("changing", move |request: ChatRequest, next: AdvisorChain| async move {
        let tools = change(request.tools.clone());
        next.next_stream(ChatRequest { tools, ..request }).await
    })
    .with_placement(Placement::new(phase))
}

/// Tools that another advisor adds are executed, in any place of that advisor.
#[tokio::test]
async fn advisor_added_tools_are_executed() {
    for phase in [Phase::Turn, Phase::Round, Phase::ModelCall] {
        let model = asks_for("added");
        let adding = changing(phase, |tools| tools.with(tool("added", "it works")));
        let run = go(client(&model, ToolCallAdvisor::new()).advisor(adding)).await;
        assert_eq!(transcript_lines(&run.response().transcript)[2], "result c1: it works", "{phase}");
        assert!(model.prompts().iter().all(|prompt| prompt.tools == ["added"]), "{phase}");
    }
}

/// A tool that an inner advisor removes is unknown: the model was not offered it.
#[tokio::test]
async fn a_tool_that_an_advisor_removes_is_unknown() {
    for phase in [Phase::Turn, Phase::Round, Phase::ModelCall] {
        let model = asks_for("look");
        let (look, given) = invoked("look");
        let removing = changing(phase, |tools| tools.filtered(|name| name != "look"));
        let run = go(client(&model, ToolCallAdvisor::new()).tool(look).advisor(removing)).await;
        assert!(transcript_lines(&run.response().transcript)[2].starts_with("error c1: there is no tool"));
        assert!(given.lock().unwrap().is_empty(), "{phase}");
    }
}

/// An advisor beside the model may describe tools in words: they can be called, and no round before the last is
/// taken for the last.
#[tokio::test]
async fn law_t2_tool_described_in_words_is_not_unknown() {
    for (described, by_api) in [(&[][..], &[][..]), (&["look"], &["look"]), (&["other"], &["other"])] {
        let answers = [
            Answer::new().text("I will look.").call("c1", "look", "{}").finish(FinishReason::ToolCalls),
            Answer::from_text("Done."),
        ];
        let model = ScriptedModel::new(answers);
        let (look, given) = invoked("look");
        let in_words = from_fn("in-words", move |request: ChatRequest, next: AdvisorChain| async move {
            let by_api = request.tools.filtered(|name| described.contains(&name));
            next.next_stream(ChatRequest { api_tools: Some(by_api), ..request }).await
        })
        .with_placement(Placement::new(Phase::ModelCall));
        let last_only = ToolCallAdvisor::builder().suppress_tool_call_streaming().build().unwrap();
        let run = go(client(&model, last_only).tool(look).tool(tool("other", "")).advisor(in_words)).await;
        assert_eq!(given.lock().unwrap().len(), 1);
        let shown: String = run.chunks.iter().filter_map(Chunk::text).collect();
        assert_eq!(shown, "Done.", "only the last round is shown");
        assert!(model.prompts().iter().all(|prompt| prompt.tools == by_api), "{described:?}");
    }
}

/// An advisor inside may replace a tool by another one, which then runs.
#[tokio::test]
async fn advisor_replaced_tool_is_the_one_run() {
    let model = asks_for("look");
    let (look, given) = invoked("look");
    let replacing = changing(Phase::Round, |tools| tools.with(tool("look", "wrapped")));
    let run = go(client(&model, ToolCallAdvisor::new()).tool(look).advisor(replacing)).await;
    assert_eq!(transcript_lines(&run.response().transcript)[2], "result c1: wrapped");
    assert!(given.lock().unwrap().is_empty());
}

/// The client's tools, one turn's tools, both together.
#[tokio::test]
async fn client_tools_and_turn_tools() {
    let model = ScriptedModel::from_fn(|prompt| match prompt.messages.last().unwrap().tool_result() {
        Some(_) => Answer::from_text("Done."),
        None => Answer::from_calls([("c1", "always", "{}"), ("c2", "once", "{}")]),
    });
    let client = client(&model, ToolCallAdvisor::new()).tool(tool("always", "there")).build().unwrap();
    let results = async |prompt: advisor_chain::Prompt| {
        let lines = transcript_lines(&prompt.call().await.unwrap().transcript);
        lines[3..5].iter().map(|line| line.starts_with("result")).collect::<Vec<_>>()
    };
    assert_eq!(results(client.prompt().user("go").tool(tool("once", "here"))).await, [true, true]);
    assert_eq!(results(client.prompt().user("go")).await, [true, false], "a turn's tool is gone after it");
}

/// Two tools of one name are refused, and the error names it.
#[tokio::test]
async fn duplicate_tool_names_are_refused() {
    let twice = ChatClient::builder(asks_for("look")).tool(tool("look", "a")).tool(tool("look", "b"));
    let error = twice.build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("`look`"), "{error}");
    let model = asks_for("look");
    let client = client(&model, ToolCallAdvisor::new()).tool(tool("look", "a")).build().unwrap();
    let error = client.prompt().user("go").tool(tool("look", "b")).call().await.unwrap_err();
    assert_eq!((error.kind(), model.calls()), (ErrorKind::Configuration, 0));
}
