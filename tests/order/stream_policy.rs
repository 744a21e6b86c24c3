//! Policies in whole chains: with the tool loop, memory, limits and drops.

use advisor_test_support::MessagesTranscript;
use advisor_tests::lines::short;
use advisor_tests::prelude::*;
use advisor_tests::reading::read_stream;
use advisor_tests::scene::Scene;
use advisor_tests::tools::definition;

const DENIED: &str = "[The call of `delete` was denied.]";

/// A chain of this policy, the tools `look`, `delete` and `show` (which returns directly), and memory in this phase.
fn scene(answers: impl IntoIterator<Item = Answer>, remembers: Phase) -> Scene {
    Scene::new(answers)
        .remembering(remembers)
        .with(|client| client.advisor(denying_deletes()))
        .tool(definition("delete"))
        .tool(ToolDefinition { return_direct: true, ..definition("show") })
}

fn denying_deletes() -> BlockPolicy {
    BlockPolicy::new(|pending: PendingBlock| async move {
        let deletes = pending.call().is_some_and(|call| call.name == "delete");
        Ok(if deletes { Verdict::deny("") } else { Verdict::Allow })
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
    for remembers in PLACES {
        let answers = [calls(&["delete"]), Answer::from_text("Bye.")];
        let scene = scene(answers, remembers).in_mode(ToolCallStreaming::All);
        let out = read_stream(scene.turn("Delete it.")).await;
        let response = out.outcome.unwrap();
        assert_eq!(response.text(), format!("Well. {DENIED}"));
        assert_eq!(response.finish.reason, FinishReason::Stop);
        assert_eq!(scene.runs(), [""; 0]);
        let first = ["Delete it.".to_owned(), format!("Well. {DENIED}")];
        assert_eq!(scene.remembered().await, first);
        assert_eq!(short(&response.transcript), first);
        let next = read_stream(scene.turn("Thanks.")).await.outcome.unwrap();
        assert_eq!(next.text(), "Bye.");
        assert_eq!(scene.sent(1), [&first[..], &["Thanks.".to_owned()]].concat(), "{remembers}");
    }
}

/// Of several calls, the allowed ones run, and the model is told of their results.
#[tokio::test]
async fn law_m4_t1_allowed_calls_beside_denied_ones_run() {
    for remembers in PLACES {
        for names in [["look", "delete"], ["delete", "look"]] {
            let answers = [calls(&names), Answer::from_text("Done.")];
            let scene = scene(answers, remembers).in_mode(ToolCallStreaming::All);
            let out = read_stream(scene.turn("go")).await;
            assert_eq!(out.outcome.unwrap().text(), "Done.");
            assert_eq!(scene.runs(), ["look"]);
            let expected = ["go", &format!("Well. {DENIED}(look)"), "= sunny", "Done."];
            assert_eq!(scene.remembered().await, expected, "{remembers} {names:?}");
            assert_eq!(scene.sent(1), expected[..3]);
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
    let kinds = response.transcript[1].blocks().iter().map(Block::kind);
    assert_eq!(kinds.collect::<Vec<_>>(), [BlockKind::Text, BlockKind::ToolCall, BlockKind::Text]);
    let sent: Value = serde_json::from_slice(&server.requests()[1].body).unwrap();
    let sent = sent["messages"][1]["content"].as_array().unwrap();
    assert_eq!(sent.iter().map(|block| &block["type"]).collect::<Vec<_>>(), ["text", "text", "tool_use"]);
    assert_eq!(sent[1]["text"], DENIED);
}

/// A tool that returns directly is judged like others.
#[tokio::test]
async fn law_m4_return_direct_is_judged() {
    for (names, text, runs) in [
        (&["show"][..], "show is done", &["show"][..]),
        (&["show", "delete"], "show is done", &["show"]),
        (&["delete"], &format!("Well. {DENIED}"), &[]),
    ] {
        let scene = scene([calls(names)], Phase::Round);
        let response = read_stream(scene.turn("go")).await.outcome.unwrap();
        assert_eq!(
            (response.text().as_str(), scene.runs()),
            (text, runs.iter().map(|run| (*run).to_owned()).collect())
        );
        assert_eq!(scene.remembered().await.last().map(String::as_str), Some(text));
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
    let in_text = || TextToolCalls::new(TextFormat::Xml);
    for client in [
        client().advisor(in_text()).advisor(denying_deletes()),
        client().advisor(denying_deletes()).advisor(in_text()),
    ] {
        let response = client.build().unwrap().prompt().user("Clean up.").call().await.unwrap();
        assert_eq!((response.text().as_str(), *runs.lock().unwrap()), (DENIED, 0));
    }
}
