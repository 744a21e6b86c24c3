//! Tests of rounds: when the loop asks again, its requests, and their results.

use advisor_chain::messages::{Delta, DeltaKind, ProviderData, ToolCallDelta};
use advisor_chain::{
    AdvisorChain, ChatClient, ChatRequest, FinishReason, FnTool, Message, Phase, Placement, Role,
    ToolCallAdvisor, from_fn,
};
use advisor_testkit::{Answer, Journal, ScriptedModel};
use futures::StreamExt;
use serde_json::json;

use crate::tool_loop::support::{assert_valid, client, definition, invoked, read, tool, transcript_lines};

fn look_then_tell() -> ScriptedModel {
    ScriptedModel::new([
        Answer::new().text("Let me look.").call("c1", "look", "{}").finish(FinishReason::ToolCalls),
        Answer::from_text("It is sunny."),
    ])
}

/// TA-20, TA-21, TA-44, AR-05: without a call the loop is one pass, and the answer is unchanged.
#[tokio::test]
async fn ta_20_without_call_answer_passes_unchanged() {
    for offered in [false, true] {
        let model = ScriptedModel::new([Answer::from_text("Hello.")]);
        let (look, given) = invoked("look");
        let builder = client(&model, ToolCallAdvisor::new());
        let client = if offered { builder.tool(look) } else { builder }.build().unwrap();
        let response = client.prompt().user("hi").call().await.unwrap();
        assert_eq!((response.text().as_str(), model.calls()), ("Hello.", 1));
        assert_eq!(response.finish().reason, FinishReason::Stop);
        assert_eq!(transcript_lines(response.transcript()), ["user: hi", "assistant: Hello."]);
        assert!(given.lock().unwrap().is_empty());
    }
}

/// TA-22, U-15: a model that sends nothing ends the turn with nothing to remember.
#[tokio::test]
async fn ta_22_empty_answer_passes_and_is_unremembered() {
    let model = ScriptedModel::new([Answer::new().done()]);
    let ledger = crate::tool_loop::support::Ledger::default();
    let client =
        client(&model, ToolCallAdvisor::new()).advisor(ledger.clone()).tool(tool("look", "sunny")).build();
    let run = read(client.unwrap().prompt().user("hi").stream()).await;
    assert_eq!(run.response().finish().reason, FinishReason::Empty);
    assert_eq!(run.lines(), ["completed 1 Empty"]);
    assert_eq!(transcript_lines(run.response().transcript()), ["user: hi"]);
    assert_eq!(transcript_lines(&ledger.transcript()), ["user: hi"]);
    assert_eq!(ledger.steps(), ["end"]);
}

/// TA-23, TA-37, AR-01, IA-01, IA-08, TM-12.
#[tokio::test]
async fn ta_23_one_tool_round_asks_model_twice() {
    let model = look_then_tell();
    let (look, given) = invoked("look");
    let client = client(&model, ToolCallAdvisor::new()).system("Be brief.").tool(look).build().unwrap();
    let response = client.prompt().user("How is it?").call().await.unwrap();
    assert_eq!(response.text(), "It is sunny.");
    assert_eq!((model.calls(), given.lock().unwrap().len()), (2, 1));
    let turn = [
        "user: How is it?", "assistant: Let me look.", "call c1 look {}", "result c1: ok",
        "assistant: It is sunny.",
    ];
    assert_eq!(transcript_lines(response.transcript()), turn);
    let sent: Vec<_> = model.prompts().iter().map(|prompt| transcript_lines(&prompt.messages)).collect();
    assert_eq!(sent[0], ["system: Be brief.", "user: How is it?"]);
    assert_eq!(sent[1][0], "system: Be brief.");
    assert_eq!(sent[1][1..], turn[..4]);
}

/// TA-25: two tool rounds are three model calls and two executions.
#[tokio::test]
async fn ta_25_two_tool_rounds_ask_three_times() {
    let model = ScriptedModel::new([
        Answer::from_calls([("c1", "look", "{}")]),
        Answer::from_calls([("c2", "look", "{}")]),
        Answer::from_text("Done."),
    ]);
    let (look, given) = invoked("look");
    let client = client(&model, ToolCallAdvisor::new()).tool(look).build().unwrap();
    let response = client.prompt().user("go").call().await.unwrap();
    assert_eq!((model.calls(), given.lock().unwrap().len(), response.text().as_str()), (3, 2, "Done."));
    let rounds: Vec<_> = model.prompts().iter().map(|prompt| prompt.round).collect();
    assert_eq!(rounds, [1, 2, 3]);
    assert_valid(response.transcript());
}

/// IT-01, IT-06, IA-03, IA-09: three cities in one answer, the loop added once for all turns or for one.
#[tokio::test]
async fn it_01_three_calls_give_three_results() {
    let cities = || {
        ScriptedModel::from_fn(|prompt| match prompt.messages.last().unwrap().role() {
            Role::User => Answer::from_calls([
                ("c1", "weather", r#"{"city":"San Francisco"}"#),
                ("c2", "weather", r#"{"city":"Tokyo"}"#),
                ("c3", "weather", r#"{"city":"Paris"}"#),
            ]),
            _ => {
                let results: Vec<_> = prompt
                    .messages
                    .iter()
                    .filter_map(|message| Some(message.tool_result()?.text()))
                    .collect();
                Answer::from_text(results.join(", "))
            }
        })
    };
    let weather = || {
        FnTool::new(definition("weather"), |arguments: serde_json::Value| async move {
            Ok(match arguments["city"].as_str() {
                Some("San Francisco") => "30",
                Some("Tokyo") => "10",
                _ => "15",
            })
        })
    };
    let always = client(&cities(), ToolCallAdvisor::new()).tool(weather()).build().unwrap();
    let once = ChatClient::builder(cities()).build().unwrap();
    let prompts = [
        always.prompt().user("Where is it warm?"),
        once.prompt().user("Where is it warm?").tool(weather()).advisor(ToolCallAdvisor::new()),
    ];
    for prompt in prompts {
        assert_eq!(prompt.clone().call().await.unwrap().text(), "30, 10, 15");
        assert_eq!(read(prompt.stream()).await.text(), "30, 10, 15");
    }
}

/// AR-02, AR-03, AR-04, IA-07, IA-13, IA-14: without the loop, calls are client-side, in one pass.
#[tokio::test]
async fn ar_02_without_loop_caller_gets_call() {
    let model = look_then_tell();
    let (look, given) = invoked("look");
    let client = ChatClient::builder(model.clone()).tool(look).build().unwrap();
    let response = client.prompt().user("How is it?").call().await.unwrap();
    assert_eq!(response.tool_calls().map(|(_, call)| call.name.as_str()).collect::<Vec<_>>(), ["look"]);
    assert_eq!((model.calls(), given.lock().unwrap().len()), (1, 0));
}

/// IA-15, IA-17, IA-18: a caller may run the loop by hand, call by call, with the same messages.
#[tokio::test]
async fn ia_15_manual_loop_gives_same_answer() {
    let model = look_then_tell();
    let client = ChatClient::builder(model.clone()).tool(tool("look", "sunny")).build().unwrap();
    let mut messages = vec![Message::user("How is it?")];
    let answer = loop {
        let response = client.prompt().messages(messages.clone()).call().await.unwrap();
        let calls: Vec<_> = response.message().tool_calls().cloned().collect();
        if calls.is_empty() {
            break response;
        }
        messages.push(response.message().clone());
        let results =
            calls.iter().map(|call| advisor_chain::messages::ToolResult::new(call, vec!["sunny".into()]));
        messages.extend(results.map(Message::tool));
    };
    assert_eq!((answer.text().as_str(), model.calls()), ("It is sunny.", 2));
}

/// IA-06, IA-12: an advisor inside the loop is passed once per round, one outside once per turn.
#[tokio::test]
async fn ia_06_inner_advisor_runs_each_round() {
    let journal = Journal::new();
    let counting = |name: &'static str, phase| {
        let journal = journal.clone();
        from_fn(name, move |request: ChatRequest, next: AdvisorChain| {
            journal.record(name);
            async move { next.next_stream(request).await }
        })
        .with_placement(Placement::new(phase))
    };
    let client = client(&look_then_tell(), ToolCallAdvisor::new())
        .advisor(counting("outer", Phase::Turn))
        .advisor(counting("inner", Phase::Round))
        .tool(tool("look", "sunny"))
        .build()
        .unwrap();
    client.prompt().user("How is it?").call().await.unwrap();
    assert_eq!(journal.labels(), ["outer", "inner", "inner"]);
}

/// Streamed calls: id, name and arguments in separate pieces are one call that runs once.
#[tokio::test]
async fn fragmented_call_runs_once_with_all_arguments() {
    let nested = r#"{"place":{"city":"Oslo","tags":["a\"b","{}"]},"days":3}"#;
    let mut piece = ToolCallDelta::start(0, "c1", "look");
    piece.name = None;
    let mut named = ToolCallDelta::start(0, "", "look");
    named.call_id = None;
    let mut answer = Answer::new().delta(Delta::tool_call(piece)).delta(Delta::tool_call(named));
    for character in nested.chars() {
        answer = answer.delta(Delta::tool_call(ToolCallDelta::arguments(0, character.to_string())));
    }
    let model = ScriptedModel::new([answer.finish(FinishReason::ToolCalls), Answer::from_text("Done.")]);
    let (look, given) = invoked("look");
    let client = client(&model, ToolCallAdvisor::new()).tool(look).build().unwrap();
    client.prompt().user("go").call().await.unwrap();
    let arguments: serde_json::Value = serde_json::from_str(nested).unwrap();
    assert_eq!(*given.lock().unwrap(), [arguments], "TM-35: nested JSON arrives intact");
}

/// U-03: text and a call in one event of the provider; reasoning and provider data are sent back unchanged and
/// in order.
#[tokio::test]
async fn model_output_is_returned_whole_and_in_order() {
    let mut call = ToolCallDelta::start(0, "c1", "look").with_arguments("{}");
    call.provider_data = Some(ProviderData::new("test", json!({"signature": "s1"})));
    let signed = DeltaKind::ReasoningData(Box::new(ProviderData::new("test", json!("thought"))));
    let model = ScriptedModel::new([
        Answer::new()
            .reasoning("Hmm.")
            .delta(signed.into())
            .text("Let me look.")
            .delta(Delta::tool_call(call))
            .text("Wait.")
            .finish(FinishReason::Stop),
        Answer::from_text("Done."),
    ]);
    let client = client(&model, ToolCallAdvisor::new()).tool(tool("look", "sunny")).build().unwrap();
    let run = read(client.prompt().user("go").stream()).await;
    assert_eq!(
        transcript_lines(run.response().transcript()),
        [
            "user: go", "reasoning: Hmm.", "assistant: Let me look.", "call c1 look {}", "assistant: Wait.",
            "result c1: sunny", "assistant: Done.",
        ]
    );
    let prompts = model.prompts();
    let sent = prompts[1].messages.iter().find(|message| message.role() == Role::Assistant).unwrap();
    assert_eq!(sent.blocks()[0].provider_data(), [ProviderData::new("test", json!("thought"))]);
    assert_eq!(sent.blocks()[2].provider_data(), [ProviderData::new("test", json!({"signature": "s1"}))]);
}

/// Reasoning alone is no answer: no provider accepts it back, so memory need not store it.
#[tokio::test]
async fn reasoning_only_answer_is_not_sent_back() {
    let model = ScriptedModel::new([
        Answer::new().reasoning("Hm.").finish(FinishReason::Paused),
        Answer::new().reasoning("Hm.").text("Done.").finish(FinishReason::Stop),
    ]);
    let run =
        read(client(&model, ToolCallAdvisor::new()).build().unwrap().prompt().user("go").stream()).await;
    let lines = transcript_lines(run.response().transcript());
    assert_eq!(lines, ["user: go", "reasoning: Hm.", "assistant: Done."]);
    assert_eq!(model.prompts()[1].messages.len(), 1);
    assert_valid(run.response().transcript());
}

/// Anthropic refuses an answer that is thinking alone, also if it is signed and the turn goes on.
#[tokio::test]
async fn law_m1_paused_signed_thinking_is_not_sent() {
    let paused = || {
        let signature = ProviderData::new("test", json!({"signature": "s1"}));
        let signed = DeltaKind::ReasoningData(Box::new(signature));
        Answer::new().reasoning("Hm.").delta(signed.into()).finish(FinishReason::Paused)
    };
    let model = ScriptedModel::new([paused(), paused(), Answer::from_text("Done.")]);
    let run =
        read(client(&model, ToolCallAdvisor::new()).build().unwrap().prompt().user("go").stream()).await;
    assert_eq!(run.text(), "Done.");
    assert_eq!(transcript_lines(run.response().transcript()), ["user: go", "assistant: Done."]);
    let sent: Vec<_> = model.prompts().iter().map(|prompt| prompt.messages.len()).collect();
    assert_eq!(sent, [1, 1, 1], "each round asks the same again");
    assert_valid(run.response().transcript());
}

/// The provider wants to be asked again as things are: a round without results.
#[tokio::test]
async fn a_paused_answer_is_continued() {
    let model = ScriptedModel::new([
        Answer::new().text("One, ").finish(FinishReason::Paused),
        Answer::new().finish(FinishReason::Paused),
        Answer::from_text("two."),
    ]);
    let run =
        read(client(&model, ToolCallAdvisor::new()).build().unwrap().prompt().user("go").stream()).await;
    assert_eq!(run.text(), "One, two.");
    assert_eq!(
        transcript_lines(run.response().transcript()),
        ["user: go", "assistant: One, ", "assistant: two."]
    );
    let sent: Vec<_> = model.prompts().iter().map(|prompt| prompt.messages.len()).collect();
    assert_eq!(sent, [1, 2, 2], "an empty answer is not sent back");
}

/// A stream that is polled after its end stays ended.
#[tokio::test]
async fn law_s1_a_turn_that_has_ended_stays_ended() {
    let client =
        client(&look_then_tell(), ToolCallAdvisor::new()).tool(tool("look", "sunny")).build().unwrap();
    let mut stream = client.prompt().user("go").stream();
    while let Some(chunk) = stream.next().await {
        chunk.unwrap();
    }
    assert!(stream.next().await.is_none());
    assert!(stream.next().await.is_none());
}
