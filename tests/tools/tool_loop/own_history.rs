//! Tests of the two senders of a turn's earlier messages: the loop, or a memory inside it.

use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

/// Takes the place of a memory and passes its input on, so that the model shows the messages of the loop.
fn stand_in() -> impl StreamAdvisor {
    from_fn(
        "stand-in",
        |request: ChatRequest, next: AdvisorChain| async move { next.next_stream(request).await },
    )
    .with_placement(Placement { phase: Phase::Round, role: AdvisorRole::Memory })
}

fn model() -> ScriptedModel {
    ScriptedModel::new([
        Answer::from_calls([("c1", "look", "{}"), ("c2", "look", "{}")]),
        Answer::from_calls([("c3", "look", "{}")]),
        Answer::from_text("Done."),
    ])
}

fn prepared(model: &ScriptedModel, advisor: ToolCallAdvisor) -> ChatClientBuilder {
    client(model, advisor).system("Be brief.").tool(tool("look", "sunny"))
}

/// With a memory inside it, the loop sends the system messages and the new messages. It detects
/// the memory, or is configured so.
#[tokio::test]
async fn memory_inside_sends_only_new_messages() {
    let told = ToolCallAdvisor::builder().internal_conversation_history(false).build().unwrap();
    for advisor in [ToolCallAdvisor::new(), told] {
        let model = model();
        let response = response_of(prepared(&model, advisor).advisor(stand_in())).await;
        let sent: Vec<_> = model.prompts().iter().map(|prompt| transcript_lines(&prompt.messages)).collect();
        assert_eq!(sent[0], ["system: Be brief.", "user: go"]);
        assert_eq!(sent[1], ["system: Be brief.", "result c1: sunny", "result c2: sunny"]);
        assert_eq!(sent[2], ["system: Be brief.", "result c3: sunny"]);
        assert_eq!(response.transcript.len(), 7, "the transcript is whole all the same");
    }
}

/// Without one, each request repeats the turn.
#[tokio::test]
async fn without_memory_requests_repeat_the_turn() {
    let kept = ToolCallAdvisor::builder().internal_conversation_history(true).build().unwrap();
    for advisor in [ToolCallAdvisor::new(), kept] {
        let model = model();
        let client = prepared(&model, advisor).build().unwrap();
        client.prompt().user("go").call().await.unwrap();
        let lengths: Vec<_> = model.prompts().iter().map(|prompt| prompt.messages.len()).collect();
        assert_eq!(lengths, [2, 5, 7]);
    }
}

/// The sent messages may be few; limits count the whole turn.
#[tokio::test]
async fn limits_count_the_whole_turn() {
    let model = model();
    let limits = ToolLimits { calls: Some(2), ..ToolLimits::default() };
    let run = go(prepared(&model, limited(limits)).advisor(stand_in())).await;
    assert_eq!((limit_of(&run), model.calls()), (Limit::Calls(2), 2));
}
