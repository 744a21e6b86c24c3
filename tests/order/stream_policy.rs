//! Policies in whole chains: with the tool loop, memory, limits and drops.

use advisor_chain::stream_policy::{Denials, OnDeny};
use advisor_test_support::MessagesTranscript;
use advisor_tests::prelude::*;

use crate::checked::read;

const MODES: [ToolCallStreaming; 3] =
    [ToolCallStreaming::TextOnly, ToolCallStreaming::FinalAnswerOnly, ToolCallStreaming::All];
const DENIED: &str = "[The call of `delete` was denied.]";

/// A chain of a policy, the tools `look`, `delete` and `show` (which returns directly), and memory in this phase.
struct Setting {
    client: ChatClient,
    model: ScriptedModel,
    memory: ChatMemoryAdvisor,
    /// The names of the tools that ran.
    runs: Arc<Mutex<Vec<String>>>,
}

impl Setting {
    fn new(answers: impl IntoIterator<Item = Answer>, policy: BlockPolicy, remembers: Phase) -> Self {
        let tool_loop = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build().unwrap();
        Self::with_loop(answers, policy, remembers, tool_loop)
    }

    fn with_loop(
        answers: impl IntoIterator<Item = Answer>,
        policy: BlockPolicy,
        remembers: Phase,
        tool_loop: ToolCallAdvisor,
    ) -> Self {
        let (model, runs) = (ScriptedModel::new(answers), Arc::new(Mutex::new(Vec::new())));
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let tool = |name: &'static str| {
            let runs = Arc::clone(&runs);
            let mut definition = ToolDefinition::new(name, "Works.", json!({"type": "object"}));
            definition.return_direct = name == "show";
            FnTool::new(definition, move |_: Value| {
                runs.lock().unwrap().push(name.to_owned());
                async move { Ok(format!("{name} is done")) }
            })
        };
        let client = ChatClient::builder(model.clone())
            .advisor(tool_loop)
            .advisor_in(remembers, memory.clone())
            .advisor(policy)
            .tool(tool("look"))
            .tool(tool("delete"))
            .tool(tool("show"))
            .build()
            .unwrap();
        Self { client, model, memory, runs }
    }

    fn turn(&self, text: &str) -> TurnStream {
        self.client.prompt().user(text).conversation("c").stream()
    }

    fn runs(&self) -> Vec<String> {
        self.runs.lock().unwrap().clone()
    }

    /// The stored messages in short, which are a valid transcript.
    async fn remembered(&self) -> Vec<String> {
        let transcript = self.memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(validate_transcript(&transcript), [], "{transcript:?}");
        transcript.iter().map(line).collect()
    }
}

/// A message in short: `text`, `text (name)`, `= result`.
fn line(message: &Message) -> String {
    let calls: String = message.tool_calls().map(|call: &ToolCall| format!("({})", call.name)).collect();
    match message.tool_result() {
        Some(result) => format!("= {}", result.text()),
        None => message.text() + &calls,
    }
}

fn denying_deletes() -> BlockPolicy {
    BlockPolicy::new(|pending: PendingBlock| async move {
        let deletes = pending.call().is_some_and(|call| call.name == "delete");
        Ok(if deletes { Verdict::deny("") } else { Verdict::Allow })
    })
}

/// A policy that waits at this gate.
fn waiting(gate: &Gate, journal: &Journal) -> BlockPolicy {
    let (gate, journal) = (gate.clone(), journal.clone());
    BlockPolicy::new(move |_| {
        let (gate, journal) = (gate.clone(), journal.clone());
        async move {
            journal.record("judge.begin");
            gate.pass().await;
            Ok(Verdict::Allow)
        }
    })
}

fn calls(names: &[&str]) -> Answer {
    let answer = Answer::new().text("Well. ");
    let calls = names.iter().enumerate();
    let answer = calls.fold(answer, |answer, (at, name)| answer.call(&format!("c{at}"), name, "{}"));
    answer.finish(FinishReason::ToolCalls)
}

/// A denied call never runs. Memory holds what was shown, in both of its places, and the next turn sends it.
#[tokio::test]
async fn law_m4_t1_denied_call_never_runs_and_is_remembered() {
    for remembers in [Phase::Round, Phase::Turn] {
        let answers = [calls(&["delete"]), Answer::from_text("Bye.")];
        let setting = Setting::new(answers, denying_deletes(), remembers);
        let out = read(setting.turn("Delete it.")).await;
        let response = out.outcome.unwrap();
        assert_eq!(response.text(), format!("Well. {DENIED}"));
        assert_eq!(response.finish().reason, FinishReason::Stop);
        assert_eq!(setting.runs(), [""; 0]);
        let first = ["Delete it.".to_owned(), format!("Well. {DENIED}")];
        assert_eq!(setting.remembered().await, first);
        assert_eq!(response.transcript().iter().map(line).collect::<Vec<_>>(), first);
        let next = read(setting.turn("Thanks.")).await.outcome.unwrap();
        assert_eq!(next.text(), "Bye.");
        let sent: Vec<_> = setting.model.prompts()[1].messages.iter().map(line).collect();
        assert_eq!(sent, [&first[..], &["Thanks.".to_owned()]].concat(), "{remembers}");
    }
}

/// Of several calls, the allowed ones run, and the model is told of their results.
#[tokio::test]
async fn law_m4_t1_allowed_calls_beside_denied_ones_run() {
    for remembers in [Phase::Round, Phase::Turn] {
        for names in [["look", "delete"], ["delete", "look"]] {
            let answers = [calls(&names), Answer::from_text("Done.")];
            let setting = Setting::new(answers, denying_deletes(), remembers);
            let out = read(setting.turn("go")).await;
            assert_eq!(out.outcome.unwrap().text(), "Done.");
            assert_eq!(setting.runs(), ["look"]);
            let expected = ["go", &format!("Well. {DENIED}(look)"), "= look is done", "Done."];
            assert_eq!(setting.remembered().await, expected, "{remembers} {names:?}");
            let sent: Vec<_> = setting.model.prompts()[1].messages.iter().map(line).collect();
            assert_eq!(sent, expected[..3]);
        }
    }
}

/// A denial behind an allowed call keeps its place in the transcript. Anthropic's API gets it before the call.
#[tokio::test]
async fn law_m1_denial_is_sent_to_anthropic_before_the_call() {
    let answer = || MessagesTranscript::new("m").text("Well.");
    let both = answer().tool_call("c1", "look", &["{}"]).tool_call("c2", "delete", &["{}"]);
    let replies = [both.finish("tool_use").done(), answer().finish("end_turn").done()].map(Reply::sse);
    let server = ReplayServer::start(replies).await.unwrap();
    let look = ToolDefinition::new("look", "Works.", json!({"type": "object"}));
    let client = ChatClient::builder(AnthropicModel::new("m").with_base_url(server.url()).with_api_key("k"))
        .advisor(ToolCallAdvisor::new())
        .advisor(denying_deletes())
        .tool(FnTool::new(look, |_: Value| async { Ok("looked") }))
        .build()
        .unwrap();
    let response = client.prompt().user("go").call().await.unwrap();
    let kinds = response.transcript()[1].blocks().iter().map(Block::kind);
    assert_eq!(kinds.collect::<Vec<_>>(), [BlockKind::Text, BlockKind::ToolCall, BlockKind::Text]);
    let sent: Value = serde_json::from_slice(&server.requests()[1].body).unwrap();
    let sent = sent["messages"][1]["content"].as_array().unwrap();
    assert_eq!(sent.iter().map(|block| &block["type"]).collect::<Vec<_>>(), ["text", "text", "tool_use"]);
    assert_eq!(sent[1]["text"], DENIED);
}

/// In each mode, the shown text is that of the response.
#[tokio::test]
async fn law_s6_denials_are_shown_in_every_mode() {
    for mode in MODES {
        let tool_loop = ToolCallAdvisor::builder().streaming(mode).build().unwrap();
        let answers = || [calls(&["look", "delete"]), calls(&["delete"])];
        let setting = Setting::with_loop(answers(), denying_deletes(), Phase::Round, tool_loop.clone());
        let out = read(setting.turn("go")).await;
        let response = out.outcome.unwrap();
        assert_eq!(response.text(), format!("Well. {DENIED}"));
        assert_eq!(out.fold.text(2), response.text(), "{mode:?}");
        let again = Setting::with_loop(answers(), denying_deletes(), Phase::Round, tool_loop);
        let called = again.client.prompt().user("go").conversation("c").call().await.unwrap();
        assert_eq!(called.text(), response.text());
        assert_eq!(again.remembered().await, setting.remembered().await);
        let denials: Denials = called.turn.extensions().get().unwrap();
        let denied: Vec<_> = denials.0.iter().map(|denial| (denial.block.round, denial.kind)).collect();
        assert_eq!(denied, [(1, BlockKind::ToolCall), (2, BlockKind::ToolCall)]);
    }
}

/// Memory and tools wait for the judge, and see what it decided.
#[tokio::test]
async fn law_o3_tools_and_round_end_wait_for_the_judge() {
    let (gate, journal) = (Gate::new(), Journal::new());
    let setting =
        Setting::new([calls(&["look"]), Answer::from_text("Done.")], waiting(&gate, &journal), Phase::Round);
    let mut turn = setting.turn("go");
    let mut text = String::new();
    while let Some(Some(chunk)) = turn.next().now_or_never() {
        let chunk = chunk.unwrap();
        text.push_str(chunk.text().unwrap_or_default());
        assert!(!matches!(chunk, Chunk::RoundCompleted(_)), "the round has not ended");
    }
    journal.assert_count("judge.begin", 1);
    assert_eq!((text.as_str(), setting.runs().len()), ("Well. ", 0));
    let stored = setting.remembered().await;
    assert_eq!(stored, ["go"], "the answer is stored when it is decided");
    gate.release();
    while let Some(chunk) = turn.next().await {
        chunk.unwrap();
    }
    assert_eq!(setting.remembered().await, ["go", "Well. (look)", "= look is done", "Done."]);
}

/// A tool that returns directly is judged like others.
#[tokio::test]
async fn law_m4_return_direct_is_judged() {
    for (names, text, runs) in [
        (&["show"][..], "show is done", &["show"][..]),
        (&["show", "delete"], "show is done", &["show"]),
        (&["delete"], &format!("Well. {DENIED}"), &[]),
    ] {
        let setting = Setting::new([calls(names)], denying_deletes(), Phase::Round);
        let response = read(setting.turn("go")).await.outcome.unwrap();
        assert_eq!(
            (response.text().as_str(), setting.runs()),
            (text, runs.iter().map(|run| (*run).to_owned()).collect())
        );
        assert_eq!(setting.remembered().await.last().map(String::as_str), Some(text));
    }
}

/// A denied call counts for no limit of the loop.
#[tokio::test]
async fn law_t3_denied_calls_count_for_no_limit() {
    let limits = ToolLimits::default().with_calls(1);
    let tool_loop = ToolCallAdvisor::builder().limits(limits).build().unwrap();
    let answers = [calls(&["delete", "look", "delete"]), Answer::from_text("Done.")];
    let setting = Setting::with_loop(answers, denying_deletes(), Phase::Round, tool_loop);
    assert_eq!(read(setting.turn("go")).await.outcome.unwrap().text(), "Done.");
    assert_eq!(setting.runs(), ["look"]);
}

/// An answer that a policy ends runs no call, also none that was allowed before.
#[tokio::test]
async fn law_t2_ended_answer_runs_no_call() {
    for remembers in [Phase::Round, Phase::Turn] {
        let policy = denying_deletes().with_on_deny(OnDeny::EndAnswer);
        let answers = [calls(&["look", "delete", "look"]), Answer::from_text("Bye.")];
        let setting = Setting::new(answers, policy, remembers);
        let out = read(setting.turn("go")).await;
        assert_eq!(out.outcome.unwrap().finish().reason, FinishReason::ContentFilter);
        assert_eq!(setting.runs(), [""; 0]);
        assert_eq!(setting.model.calls(), 1);
        let remembered = setting.remembered().await;
        assert_eq!(remembered[..2], ["go", &format!("Well. {DENIED}(look)")]);
        assert_eq!(read(setting.turn("Thanks.")).await.outcome.unwrap().text(), "Bye.");
    }
}

/// Redaction and a judge in one chain: memory, transcript and response hold what was shown.
#[tokio::test]
async fn law_m4_redacted_text_is_remembered() {
    for remembers in [Phase::Round, Phase::Turn] {
        let answer = Answer::new().text("It was Mal").text("lory. ").call("c1", "delete", "{}");
        let model = ScriptedModel::new([answer.finish(FinishReason::ToolCalls)]);
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let client = advisor_chain::client(model)
            .advisor_in(remembers, memory.clone())
            .advisor(ReplaceText::new([("Mallory", "[name]"), ("denied", "refused")]))
            .advisor(denying_deletes())
            .build()
            .unwrap();
        let out = read(client.prompt().user("Who?").conversation("c").stream()).await;
        let response = out.outcome.unwrap();
        let expected = "It was [name]. [The call of `delete` was refused.]";
        assert_eq!((response.text().as_str(), out.fold.text(1).as_str()), (expected, expected));
        let transcript = memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(transcript.iter().map(line).collect::<Vec<_>>(), ["Who?", expected]);
    }
}

/// A call in the text is judged, whether the policy is added before or after the advisor that finds the call.
#[tokio::test]
async fn law_t2_denied_call_in_text_never_runs() {
    let runs = Arc::new(Mutex::new(0));
    let client = || {
        let answers = [Answer::from_text("<tool name=\"delete\"></tool>"), Answer::from_text("Done.")];
        let runs = Arc::clone(&runs);
        let definition = ToolDefinition::new("delete", "Deletes.", json!({"type": "object"}));
        let delete = FnTool::new(definition, move |_: Value| {
            *runs.lock().unwrap() += 1;
            async { Ok("deleted") }
        });
        advisor_chain::client(ScriptedModel::new(answers)).tool(delete)
    };
    let in_text = || TextToolCalls::new(PromptFormat::Xml);
    for client in [
        client().advisor(in_text()).advisor(denying_deletes()),
        client().advisor(denying_deletes()).advisor(in_text()),
    ] {
        let response = client.build().unwrap().prompt().user("Clean up.").call().await.unwrap();
        assert_eq!((response.text().as_str(), *runs.lock().unwrap()), (DENIED, 0));
    }
}

/// Outside memory or the tool loop, a policy would come too late.
#[test]
fn policy_outside_memory_is_refused() {
    for phase in [Phase::Turn, Phase::Round] {
        let client = advisor_chain::client(ScriptedModel::new([]))
            .advisor_in(phase, denying_deletes().with_name("no-deletes"))
            .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()));
        let error = client.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.to_string().contains("no-deletes"), "{error}");
    }
}
