//! The turns that every protocol is tested with: what a real chain emits.

use advisor_core::{
    ChatClient, ChatModel, ChatResponse, Chunk, Citation, Delta, DeltaKind, Error, ErrorKind, FallbackModel,
    FinishReason, Media, Result, ToolDefinition, ToolSet, async_trait,
};
use advisor_testkit::{Answer, Gate, ScriptedModel};
use futures::StreamExt;
use serde_json::json;
use tool_call_advisor::{
    ClientSideTool, FnTool, LoopHooks, PolicyAction, ToolCallAdvisor, ToolCallAdvisorBuilder,
    ToolCallStreaming, ToolError, ToolLimits, ToolPolicy, ToolRule,
};

pub(crate) type Turn = Vec<Result<Chunk>>;

fn definition(name: &str) -> ToolDefinition {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    ToolDefinition::new(name, "Looks something up.", schema)
}

/// Runs a turn over a model that answers with these scripts, with the tools `weather`, `broken` and `ask_user`. The tool
/// `slow` waits until the tool `fast` runs.
pub(crate) async fn play(answers: impl IntoIterator<Item = Answer>) -> Turn {
    play_with(ScriptedModel::new(answers), ToolCallStreaming::All).await
}

pub(crate) async fn play_with(model: impl ChatModel + 'static, streaming: ToolCallStreaming) -> Turn {
    run(model, tool_loop().streaming(streaming)).await
}

fn tool_loop() -> ToolCallAdvisorBuilder {
    ToolCallAdvisor::builder()
        .limits(ToolLimits { rounds: Some(3), ..ToolLimits::default() })
        .streaming(ToolCallStreaming::All)
}

/// Returns the tools of the turns.
pub(crate) fn tools() -> ToolSet {
    let weather = FnTool::with_invocation(definition("weather"), |invocation| async move {
        invocation.progress.report("asking").await;
        tokio::task::yield_now().await;
        Ok(json!({"sky": "clear"}).into())
    });
    let broken = FnTool::with_invocation(definition("broken"), |_| async {
        Err(ToolError::new("the service is down"))
    });
    let gate = Gate::new();
    let opened = gate.clone();
    let slow = FnTool::with_invocation(definition("slow"), move |_| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok("late".into())
        }
    });
    let fast = FnTool::with_invocation(definition("fast"), move |_| {
        opened.release();
        async { Ok("early".into()) }
    });
    let ask_user = ClientSideTool::new(definition("ask_user"));
    ToolSet::new().with(slow).with(fast).with(weather).with(broken).with(ask_user)
}

async fn run(model: impl ChatModel + 'static, tool_loop: ToolCallAdvisorBuilder) -> Turn {
    let client = ChatClient::builder(model).advisor(tool_loop.build().unwrap()).tools(&tools());
    let client = client.build().unwrap();
    client.prompt().user("How is it?").stream().collect().await
}

fn weather(id: &str) -> (&str, &str, &str) {
    (id, "weather", r#"{"city":"Oslo"}"#)
}

/// Returns all turns with their names.
pub(crate) async fn all() -> Vec<(&'static str, Turn)> {
    let sunny = || Answer::from_text("It is sunny.");
    let mut turns = vec![
        ("text", play([Answer::new().text("It is ").text("sunny.").usage(12, 4).done()]).await),
        ("reasoning", play([Answer::new().reasoning("Hm.\n\n").text("Yes.").done()]).await),
        ("one call", play([Answer::from_calls([weather("c1")]), sunny()]).await),
        (
            "text, then parallel calls",
            play([
                Answer::new()
                    .text("Let me look.")
                    .call("c1", "weather", "{}")
                    .call("c2", "weather", "")
                    .done(),
                sunny(),
            ])
            .await,
        ),
        (
            "an id repeated in a later round",
            play([Answer::from_calls([weather("c1")]), Answer::from_calls([weather("c1")]), sunny()]).await,
        ),
        ("a failed tool", play([Answer::from_calls([("c1", "broken", "{}"), weather("c2")]), sunny()]).await),
        ("an unknown tool", play([Answer::from_calls([("c1", "wether", "{}")]), sunny()]).await),
        (
            "arguments that are no JSON",
            play([Answer::from_calls([("c1", "weather", "{\"ci")]), sunny()]).await,
        ),
        (
            "arguments of another type",
            play([Answer::from_calls([("c1", "weather", r#"{"city":7}"#)]), sunny()]).await,
        ),
        (
            "a call for the client",
            play([Answer::new().text("Which city?").call("c1", "ask_user", r#"{"city":""}"#).done()]).await,
        ),
        (
            "calls for both",
            play([Answer::from_calls([weather("c1"), ("c2", "ask_user", "{}")]), sunny()]).await,
        ),
        ("the limit of rounds", play((1..9).map(|_| Answer::from_calls([weather("c1")]))).await),
        ("an answer that is cut", play([ending(FinishReason::Length)]).await),
        (
            "a call that is cut",
            play([Answer::new().call("c1", "weather", "{\"ci").finish(FinishReason::Length).done()]).await,
        ),
        ("an answer that is filtered", play([ending(FinishReason::ContentFilter)]).await),
        ("an answer that is interrupted", play([ending(FinishReason::Interrupted)]).await),
        ("tools that end in reverse order", reversed().await),
        ("a denied call", denied().await),
        ("sources", play([sources()]).await),
        ("an empty answer", play([Answer::new().done()]).await),
        ("a refusal", play([refusal()]).await),
        ("a picture", play([picture()]).await),
        ("an error before any text", play([Answer::refused(failure())]).await),
        ("an error within a text", play([Answer::new().text("It is").error(failure())]).await),
        (
            "an error after tools",
            play([Answer::from_calls([weather("c1")]), Answer::new().reasoning("Hm").error(failure())]).await,
        ),
        (
            "an error within a call",
            play([Answer::new().call("c1", "weather", "{\"ci").error(failure())]).await,
        ),
        ("a second attempt", restarted().await),
    ];
    let hidden = ScriptedModel::new([Answer::from_calls([weather("c1")]), sunny()]);
    turns.push(("calls of both sides that wait", waiting().await));
    turns.push(("only the final answer", play_with(hidden, ToolCallStreaming::FinalAnswerOnly).await));
    turns
}

/// An answer with a text that ends for this reason.
pub(crate) fn ending(reason: FinishReason) -> Answer {
    Answer::new().text("It is").finish(reason).done()
}

/// A turn whose second tool ends before its first.
pub(crate) async fn reversed() -> Turn {
    play([Answer::from_calls([("c1", "slow", "{}"), ("c2", "fast", "{}")]), Answer::from_text("Done.")]).await
}

/// Leaves out the last call of the first round.
struct DenyLast;

#[async_trait]
impl LoopHooks for DenyLast {
    async fn after_round(&self, response: ChatResponse, round: u32) -> Result<ChatResponse> {
        if round != 1 {
            return Ok(response);
        }
        let mut blocks: Vec<_> = response.blocks().map(|(id, block)| (id, block.clone())).collect();
        blocks.pop();
        Ok(response.with_blocks(blocks))
    }
}

/// A turn with a call that runs, and one that the application denies.
pub(crate) async fn denied() -> Turn {
    let calls = Answer::from_calls([weather("c1"), weather("c2")]);
    let model = ScriptedModel::new([calls, Answer::from_text("Only one.")]);
    run(model, tool_loop().hooks(DenyLast)).await
}

/// A turn that ends with a call that waits for a person, and one of the client.
pub(crate) async fn waiting() -> Turn {
    let policy =
        ToolPolicy { rules: vec![ToolRule::new(["weather"], PolicyAction::Ask)], ..ToolPolicy::default() };
    let calls = Answer::from_calls([weather("c1"), ("c2", "ask_user", "{}")]);
    run(ScriptedModel::new([calls]), tool_loop().policy(policy)).await
}

/// An answer with two sources that have an address, and one that has none.
pub(crate) fn sources() -> Answer {
    let source = |url: Option<&str>, title: &str| {
        let mut citation = Citation::default();
        (citation.url, citation.title) = (url.map(Into::into), Some(title.into()));
        Delta::from(DeltaKind::Citation(Box::new(citation)))
    };
    Answer::new()
        .text("It rains. ")
        .delta(source(Some("https://example.org/rain"), "Rain"))
        .text("It blows.")
        .delta(source(Some("https://example.org/wind"), "Wind"))
        .delta(source(None, "A book"))
        .done()
}

fn failure() -> Error {
    Error::new(ErrorKind::Provider { status: Some(500) }, "canary: 10.0.0.7 said no")
}

fn refusal() -> Answer {
    Answer::new()
        .delta(Delta::from(DeltaKind::Refusal("I cannot help with that.".into())))
        .finish(FinishReason::Refusal)
        .done()
}

/// An answer with a picture and a text.
pub(crate) fn picture() -> Answer {
    Answer::new().delta(Delta::media(Media::from_bytes("image/png", vec![1, 2, 3]))).text("A fjord.").done()
}

/// A turn whose model fails after it has emitted text, and is replaced by another one.
async fn restarted() -> Turn {
    let first = Answer::new().text("It is").call("c1", "weather", "{").error(failure());
    let model = FallbackModel::new(ScriptedModel::new([first]))
        .with_fallback(ScriptedModel::new([Answer::from_text("It is sunny.")]))
        .with_restart_after_output();
    play_with(model, ToolCallStreaming::All).await
}

/// Returns the text that a turn shows, over all rounds.
pub(crate) fn shown_text(turn: &Turn) -> String {
    turn.iter().filter_map(|item| item.as_ref().ok()?.text()).collect()
}
