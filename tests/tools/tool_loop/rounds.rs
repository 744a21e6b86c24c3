//! Tests of rounds: when the loop asks again, its requests, and their results.

use advisor_chain::messages::{ProviderData, ToolCallDelta};
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

fn look_then_tell() -> ScriptedModel {
    ScriptedModel::new([
        Answer::new().text("Let me look.").call("c1", "look", "{}").finish(FinishReason::ToolCalls),
        Answer::from_text("It is sunny."),
    ])
}

/// Without a call the loop is one pass, and the answer is unchanged.
#[tokio::test]
async fn without_call_answer_passes_unchanged() {
    for offered in [false, true] {
        let model = ScriptedModel::new([Answer::from_text("Hello.")]);
        let (look, given) = invoked("look");
        let builder = client(&model, ToolCallAdvisor::new());
        let client = if offered { builder.tool(look) } else { builder }.build().unwrap();
        let response = client.prompt().user("hi").call().await.unwrap();
        assert_eq!((response.text().as_str(), model.calls()), ("Hello.", 1));
        assert_eq!(response.finish.reason, FinishReason::Stop);
        assert_eq!(transcript_lines(&response.transcript), ["user: hi", "assistant: Hello."]);
        assert!(given.lock().unwrap().is_empty());
    }
}

/// A model that sends nothing ends the turn with nothing to remember.
#[tokio::test]
async fn empty_answer_passes_and_is_unremembered() {
    let model = ScriptedModel::new([Answer::new().done()]);
    let ledger = Ledger::default();
    let client =
        client(&model, ToolCallAdvisor::new()).advisor(ledger.clone()).tool(tool("look", "sunny")).build();
    let run = read(client.unwrap().prompt().user("hi").stream()).await;
    assert_eq!(run.response().finish.reason, FinishReason::Empty);
    assert_eq!(run.lines(), ["completed 1 Empty"]);
    assert_eq!(transcript_lines(&run.response().transcript), ["user: hi"]);
    assert_eq!(transcript_lines(&ledger.transcript()), ["user: hi"]);
    assert_eq!(ledger.steps(), ["end"]);
}

#[tokio::test]
async fn one_tool_round_asks_model_twice() {
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
    assert_eq!(transcript_lines(&response.transcript), turn);
    let sent: Vec<_> = model.prompts().iter().map(|prompt| transcript_lines(&prompt.messages)).collect();
    assert_eq!(sent[0], ["system: Be brief.", "user: How is it?"]);
    assert_eq!(sent[1][0], "system: Be brief.");
    assert_eq!(sent[1][1..], turn[..4]);
}

/// Text and a call in one event of the provider; reasoning and provider data are sent back unchanged and
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
    let run = go(client(&model, ToolCallAdvisor::new()).tool(tool("look", "sunny"))).await;
    assert_eq!(
        transcript_lines(&run.response().transcript),
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
    assert_eq!(transcript_lines(&run.response().transcript), ["user: go", "assistant: Done."]);
    let sent: Vec<_> = model.prompts().iter().map(|prompt| prompt.messages.len()).collect();
    assert_eq!(sent, [1, 1, 1], "each round asks the same again");
    assert_valid(&run.response().transcript);
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
        transcript_lines(&run.response().transcript),
        ["user: go", "assistant: One, ", "assistant: two."]
    );
    let sent: Vec<_> = model.prompts().iter().map(|prompt| prompt.messages.len()).collect();
    assert_eq!(sent, [1, 2, 2], "an empty answer is not sent back");
}
