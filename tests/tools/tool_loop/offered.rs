//! Tests that only tools which were offered to the model in a round can be called, whatever advisor added them.

use std::sync::{Arc, Mutex};

use advisor_chain::chain::{AdvisorRole, History};
use advisor_chain::tools::{LoopHooks, ToolSet};
use advisor_chain::{
    AdvisorChain, AdvisorInfo, ChatClient, ChatRequest, Chunk, ChunkStream, ErrorKind, FinishReason, Phase,
    Placement, Result, StreamAdvisor, ToolCallAdvisor, async_trait, from_fn,
};
use advisor_testkit::{Answer, ScriptedModel};

use crate::tool_loop::support::{client, invoked, read, tool, transcript_lines};

fn asks_for(name: &'static str) -> ScriptedModel {
    ScriptedModel::new([Answer::from_calls([("c1", name, "{}")]), Answer::from_text("Done.")])
}

/// An advisor that changes the tools of every request that passes.
fn changing(phase: Phase, change: fn(ToolSet) -> ToolSet) -> impl StreamAdvisor {
    from_fn("changing", move |request: ChatRequest, next: AdvisorChain| async move {
        let tools = change(request.tools.clone());
        next.next_stream(request.with_tools(tools)).await
    })
    .with_placement(Placement::new(phase))
}

/// AR-06: tools that another advisor adds are executed, in any place of that advisor.
#[tokio::test]
async fn ar_06_advisor_added_tools_are_executed() {
    for phase in [Phase::Turn, Phase::Round, Phase::ModelCall] {
        let model = asks_for("added");
        let adding = changing(phase, |tools| tools.with(tool("added", "it works")));
        let client = client(&model, ToolCallAdvisor::new()).advisor(adding).build().unwrap();
        let run = read(client.prompt().user("go").stream()).await;
        assert_eq!(transcript_lines(run.response().transcript())[2], "result c1: it works", "{phase}");
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
        let client = client(&model, ToolCallAdvisor::new()).tool(look).advisor(removing).build().unwrap();
        let run = read(client.prompt().user("go").stream()).await;
        assert!(transcript_lines(run.response().transcript())[2].starts_with("error c1: there is no tool"));
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
            next.next_stream(request.with_api_tools(by_api)).await
        })
        .with_placement(Placement::new(Phase::ModelCall));
        let last_only = ToolCallAdvisor::builder().suppress_tool_call_streaming().build().unwrap();
        let client =
            client(&model, last_only).tool(look).tool(tool("other", "")).advisor(in_words).build().unwrap();
        let run = read(client.prompt().user("go").stream()).await;
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
    let client = client(&model, ToolCallAdvisor::new()).tool(look).advisor(replacing).build().unwrap();
    let run = read(client.prompt().user("go").stream()).await;
    assert_eq!(transcript_lines(run.response().transcript())[2], "result c1: wrapped");
    assert!(given.lock().unwrap().is_empty());
}

/// AR-01, AR-07, AR-08: the client's tools, one turn's tools, both together.
#[tokio::test]
async fn ar_07_client_tools_and_turn_tools() {
    let model = ScriptedModel::from_fn(|prompt| match prompt.messages.last().unwrap().tool_result() {
        Some(_) => Answer::from_text("Done."),
        None => Answer::from_calls([("c1", "always", "{}"), ("c2", "once", "{}")]),
    });
    let client = client(&model, ToolCallAdvisor::new()).tool(tool("always", "there")).build().unwrap();
    let results = async |prompt: advisor_chain::Prompt| {
        let lines = transcript_lines(prompt.call().await.unwrap().transcript());
        lines[3..5].iter().map(|line| line.starts_with("result")).collect::<Vec<_>>()
    };
    assert_eq!(results(client.prompt().user("go").tool(tool("once", "here"))).await, [true, true]);
    assert_eq!(results(client.prompt().user("go")).await, [true, false], "a turn's tool is gone after it");
}

/// TM-15: two tools of one name are refused, and the error names it.
#[tokio::test]
async fn tm_15_duplicate_tool_names_are_refused() {
    let twice = ChatClient::builder(asks_for("look")).tool(tool("look", "a")).tool(tool("look", "b"));
    let error = twice.build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("`look`"), "{error}");
    let model = asks_for("look");
    let client = client(&model, ToolCallAdvisor::new()).tool(tool("look", "a")).build().unwrap();
    let error = client.prompt().user("go").tool(tool("look", "b")).call().await.unwrap_err();
    assert_eq!((error.kind(), model.calls()), (ErrorKind::Configuration, 0));
}

/// TM-18: a tool is a closure over typed arguments.
#[tokio::test]
async fn tm_18_a_tool_may_take_typed_arguments() {
    let model = ScriptedModel::new([
        Answer::from_calls([("c1", "add", r#"{"a":2,"b":3}"#)]),
        Answer::from_text("Done."),
    ]);
    let add = advisor_chain::FnTool::new(
        crate::tool_loop::support::definition("add"),
        |numbers: std::collections::BTreeMap<String, i64>| async move {
            Ok(numbers.values().sum::<i64>().to_string())
        },
    );
    let client = client(&model, ToolCallAdvisor::new()).tool(add).build().unwrap();
    let response = client.prompt().user("go").call().await.unwrap();
    assert_eq!(transcript_lines(response.transcript())[2], "result c1: 5");
}

/// ToolSearch: an advisor inside the loop offers in each round the tools that a search has found so far.
#[tokio::test]
async fn discovered_tools_are_offered_in_next_round() {
    let catalogue = || [tool("weather", "sunny"), tool("clock", "noon"), tool("never found", "x")];
    let offering = from_fn("tool search", move |request: ChatRequest, next: AdvisorChain| async move {
        let found: String = request
            .messages
            .iter()
            .filter_map(|message| message.tool_result())
            .filter(|result| result.name == "search")
            .map(advisor_chain::messages::ToolResult::text)
            .collect();
        let named = catalogue()
            .into_iter()
            .filter(|tool| found.contains(advisor_chain::Tool::definition(tool).name.as_str()));
        let tools = named.fold(request.tools.clone(), ToolSet::with);
        next.next_stream(request.with_tools(tools)).await
    })
    .with_placement(Placement::new(Phase::Round));
    let model = ScriptedModel::new([
        Answer::from_calls([("c1", "weather", "{}"), ("c2", "search", "{}")]),
        Answer::from_calls([("c3", "weather", "{}"), ("c4", "clock", "{}")]),
        Answer::from_text("Done."),
    ]);
    let client = client(&model, ToolCallAdvisor::new())
        .advisor(offering)
        .tool(tool("search", "weather, clock"))
        .build()
        .unwrap();
    let response = client.prompt().user("go").call().await.unwrap();
    let offered: Vec<_> = model.prompts().into_iter().map(|prompt| prompt.tools).collect();
    assert_eq!(offered, [&["search"][..], &["search", "weather", "clock"], &["search", "weather", "clock"]]);
    let lines = transcript_lines(response.transcript());
    assert!(lines[3].starts_with("error c1: there is no tool"), "not yet offered: {lines:?}");
    assert_eq!(lines[7..9], ["result c3: sunny", "result c4: noon"]);
}

/// AR-09, AR-10: the added loop runs, and no second loop is added.
#[tokio::test]
async fn ar_09_added_loop_replaces_default_loop() {
    struct Counted(Arc<Mutex<u32>>);
    #[async_trait]
    impl LoopHooks for Counted {
        async fn loop_start(&self, request: ChatRequest) -> Result<ChatRequest> {
            *self.0.lock().unwrap() += 1;
            Ok(request)
        }
    }
    let count = Arc::default();
    let own = ToolCallAdvisor::builder().hooks(Counted(Arc::clone(&count))).build().unwrap();
    let model = asks_for("look");
    let client =
        advisor_chain::client(model.clone()).advisor(own).tool(tool("look", "sunny")).build().unwrap();
    assert_eq!(client.explain().entries.len(), 1);
    assert_eq!(client.prompt().user("go").call().await.unwrap().text(), "Done.");
    assert_eq!(*count.lock().unwrap(), 1);
}

/// AR-01, AR-05: the facade adds the loop, which costs one pass where no tool is called.
#[tokio::test]
async fn ar_01_the_facade_adds_the_loop() {
    let model = asks_for("look");
    let client = advisor_chain::client(model.clone()).tool(tool("look", "sunny")).build().unwrap();
    assert_eq!(client.prompt().user("go").call().await.unwrap().text(), "Done.");
    assert_eq!(model.calls(), 2);
}

/// A tool loop of another make, which does nothing.
struct Idle;

impl AdvisorInfo for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn placement(&self) -> Placement {
        Placement::new(Phase::Loop).with_role(AdvisorRole::ToolLoop { history: History::Auto })
    }
}

#[async_trait]
impl StreamAdvisor for Idle {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        next.next_stream(request).await
    }
}

/// AR-12: a loop of another make takes the place; the call is client-side, in one pass.
#[tokio::test]
async fn ar_12_custom_loop_replaces_default_loop() {
    let model = asks_for("look");
    let client =
        advisor_chain::client(model.clone()).advisor(Idle).tool(tool("look", "sunny")).build().unwrap();
    let response = client.prompt().user("go").call().await.unwrap();
    assert_eq!((response.tool_calls().count(), model.calls()), (1, 1));
}

/// TA-06, TA-07, TA-08: the place and the name of the loop.
#[test]
fn ta_06_the_loop_says_what_it_is() {
    let advisor = ToolCallAdvisor::default();
    assert_eq!(advisor.name(), "tool-call");
    assert_eq!(advisor.placement().phase, Phase::Loop);
    assert_eq!(advisor.placement().role, AdvisorRole::ToolLoop { history: History::Auto });
    let off = ToolCallAdvisor::builder().disable_internal_conversation_history().build().unwrap();
    assert_eq!(off.placement().role, AdvisorRole::ToolLoop { history: History::InMemory });
    let on = ToolCallAdvisor::builder().internal_conversation_history(true).build().unwrap();
    assert_eq!(on.placement().role, AdvisorRole::ToolLoop { history: History::InLoop });
}
