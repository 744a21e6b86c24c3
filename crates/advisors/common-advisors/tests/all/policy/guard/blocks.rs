//! Guards on blocks of an answer: the reply is a separate block, and calls of an ended answer are vetoed.

use advisor_core::{BlockKind, ChatClient, ChatRequest, ChatResponse, DeltaKind, FinishReason, Message};
use advisor_testkit::{Answer, ScriptedModel};
use common_advisors::policy::{Guard, LetterCase, OutputGuard};

fn secret() -> Guard {
    Guard::for_words(["secret"], LetterCase::Exact).with_reply("[no]")
}

async fn response(guard: OutputGuard, answer: Answer) -> ChatResponse {
    let chain =
        ChatClient::builder(ScriptedModel::new([answer])).advisor(guard).build().unwrap().chain().clone();
    chain.next_call(ChatRequest::new(Message::user("?"))).await.unwrap()
}

/// The kinds and the texts of an answer.
fn blocks(response: &ChatResponse) -> Vec<(BlockKind, String)> {
    let blocks = response.message().blocks().iter();
    blocks
        .map(|block| (block.kind(), block.content().text_of(block.kind()).unwrap_or_default().to_owned()))
        .collect()
}

fn own(blocks: &[(BlockKind, &str)]) -> Vec<(BlockKind, String)> {
    blocks.iter().map(|(kind, text)| (*kind, (*text).to_owned())).collect()
}

/// The reply is a separate block after the shown text, also if that is reasoning or a refusal.
#[tokio::test]
async fn law_s4_reply_follows_the_shown_text() {
    use BlockKind::{Reasoning, Refusal, Text};
    for (answer, expected) in [
        (Answer::new().text("a sec").text("ret b"), own(&[(Text, "a "), (Text, "[no]")])),
        (Answer::new().reasoning("a secret").text("b"), own(&[(Reasoning, "a "), (Text, "[no]")])),
        (
            Answer::new().delta(DeltaKind::Refusal("a secret".into()).into()),
            own(&[(Refusal, "a "), (Text, "[no]")]),
        ),
        (
            Answer::new().text("a sec").reasoning("ret").text("b"),
            own(&[(Text, "a sec"), (Reasoning, "ret"), (Text, "b")]),
        ),
    ] {
        let response = response(secret().on_output(), answer.finish(FinishReason::Stop)).await;
        assert_eq!(blocks(&response), expected);
    }
}

/// Calls before the match are in the answer, and its reason vetoes them. Arguments are not searched.
#[tokio::test]
async fn law_t2_calls_of_an_ended_answer_are_vetoed() {
    let answer =
        Answer::new().call("c1", "look", r#"{"at":"secret"}"#).text("a secret").call("c2", "look", "{}");
    let response = response(secret().on_output(), answer.finish(FinishReason::ToolCalls)).await;
    assert_eq!(response.text(), "a [no]");
    assert_eq!(response.tool_calls().map(|(_, call)| call.id.as_str()).collect::<Vec<_>>(), ["c1"]);
    assert!(response.finish.reason.vetoes_calls());
}

#[tokio::test]
async fn chosen_kinds_are_checked() {
    let answer = || Answer::new().reasoning("a secret").text("a plan").finish(FinishReason::Stop);
    let text_only = secret().on_output().with_kinds([BlockKind::Text]);
    assert_eq!(response(text_only, answer()).await.finish.reason, FinishReason::Stop);
    let closure = Guard::for_texts(|text| text.contains("plan")).with_reply("").on_output();
    let ended = response(closure.with_kinds([BlockKind::Text]), answer()).await;
    assert_eq!(ended.finish.reason, FinishReason::ContentFilter);
    assert_eq!(ended.text(), "", "an empty reply leaves nothing");
}

/// One guard serves many answers at once, none of which sees the text of another.
#[tokio::test]
async fn law_s7_answers_do_not_share_a_search() {
    let guard = Guard::for_pattern("secrets?").unwrap().with_reply("[no]").on_output();
    for (text, expected) in [("a sec", "a sec"), ("ret", "ret"), ("a secret", "a [no]"), ("b", "b")] {
        let response = response(guard.clone(), Answer::from_text(text)).await;
        assert_eq!(response.text(), expected);
    }
}
