//! Blocks that are replaced by others, and policies around policies.

use std::sync::Arc;

use advisor_core::{Block, BlockContent, BlockKind, FinishReason, ToolCall};
use advisor_testkit::Answer;
use common_advisors::policy::{BlockPolicy, LetterCase, ReplaceText, Verdict};

use crate::policy::blocks::common::{denying, judged, opened, run};

fn answer() -> Answer {
    Answer::new()
        .reasoning("hm")
        .text("Let me look.")
        .call("c1", "look", "{}")
        .finish(FinishReason::ToolCalls)
}

fn call(name: &str) -> Block {
    ToolCall::new("", name, "{}").into()
}

/// Replaces blocks with this content in short.
fn replacing(kind: BlockKind, with: Vec<Block>) -> BlockPolicy {
    BlockPolicy { kinds: vec![kind], ..judged(move |_| Verdict::Replace(with.clone())) }
}

/// A policy for texts.
fn judged_texts(judge: impl Fn(&str) -> Verdict + Send + Sync + 'static) -> BlockPolicy {
    let policy = judged(move |pending| judge(pending.block.as_text().unwrap()));
    BlockPolicy { kinds: vec![BlockKind::Text], ..policy }
}

#[tokio::test]
async fn blocks_are_replaced_by_other_kinds() {
    use BlockKind::{Reasoning, Text, ToolCall};
    let [kept, look] = ["Let me look.", "(look {})"];
    for (kind, with, expected) in [
        (Text, vec![Block::text("Well.")], vec!["<hm>", "Well.", look]),
        (ToolCall, vec![Block::text("Well.")], vec!["<hm>", kept, "Well."]),
        (Text, vec![call("work")], vec!["<hm>", "(work {})", look]),
        (ToolCall, vec![call("work")], vec!["<hm>", kept, "(work {})"]),
        (ToolCall, vec![], vec!["<hm>", kept]),
        (Reasoning, vec![Block::text("Aha.")], vec!["Aha.", kept, look]),
        (
            Text,
            vec![Block::text("a"), call("work"), Block::new(BlockContent::Refusal("b".into()))],
            vec!["<hm>", "a", "(work {})", "Refusal", look],
        ),
    ] {
        let run = run(answer(), vec![Arc::new(replacing(kind, with))]).await;
        assert_eq!(run.blocks(), expected);
        let has_calls = run.response().tool_calls().next().is_some();
        assert_eq!(run.response().finish.reason == FinishReason::ToolCalls, has_calls);
        let ids: std::collections::BTreeSet<_> =
            run.response().tool_calls().map(|(_, call)| &call.id).collect();
        assert_eq!(ids.len(), run.response().tool_calls().count());
        assert!(!ids.iter().any(|id| id.is_empty()));
    }
}

/// Replacements of replacements have ids of their own, and stand in the place of what they replace.
#[tokio::test]
async fn law_s3_replacements_of_replacements_have_ids() {
    let twice = || {
        judged_texts(|text| {
            Verdict::Replace(vec![Block::text(format!("{text}1")), Block::text(format!("{text}2"))])
        })
    };
    let answer = Answer::new().text("a").call("c1", "look", "{}").text("b").finish(FinishReason::ToolCalls);
    let run = run(answer, vec![Arc::new(twice()), Arc::new(twice())]).await;
    assert_eq!(run.blocks(), ["a11", "a12", "a21", "a22", "(look {})", "b11", "b12", "b21", "b22"]);
}

/// A block that takes the place of one keeps it, also among blocks that another policy has added there.
#[tokio::test]
async fn law_s4_replacement_stands_in_the_place_of_its_block() {
    let two = || replacing(BlockKind::ToolCall, vec![Block::text("one"), call("two")]);
    let louder = judged_texts(|text| match text {
        "one" => Verdict::Replace(vec![Block::text("ONE")]),
        _ => Verdict::Allow,
    });
    let run_two = run(answer(), vec![Arc::new(louder), Arc::new(two())]).await;
    assert_eq!(run_two.blocks(), ["<hm>", "Let me look.", "ONE", "(two {})"]);
    // A call in place of a call has its id, as its head says.
    let other = replacing(BlockKind::ToolCall, vec![call("other")]);
    let run_other = run(answer(), vec![Arc::new(other)]).await;
    let calls: Vec<_> =
        run_other.response().tool_calls().map(|(_, call)| (call.id.as_str(), call.name.as_str())).collect();
    assert_eq!(calls, [("c1", "other")]);
}

/// The policy added last is nearest to the model and acts first. The others see what it emits, its denials too.
#[tokio::test]
async fn policies_act_from_the_model_outwards() {
    let words = |word: &'static str, with: &'static str| Arc::new(ReplaceText::new([(word, with)]));
    let of = |policies| run(answer(), policies);
    let run_ab = of(vec![words("look", "see"), words("me", "us look")]).await;
    assert_eq!(run_ab.blocks(), ["<hm>", "Let us see see.", "(look {})"]);
    let run_ba = of(vec![words("me", "us look"), words("look", "see")]).await;
    assert_eq!(run_ba.blocks(), ["<hm>", "Let us look see.", "(look {})"]);
    // A call of an inner policy is judged by the outer one; a denial text passes the outer policies.
    let inner = replacing(BlockKind::ToolCall, vec![call("delete")]);
    let outer = BlockPolicy { name: "outer".into(), ..denying(&["delete"]) };
    let shout = ReplaceText::for_words([("the call", "a try")], LetterCase::Ignore);
    let run = run(answer(), vec![Arc::new(shout), Arc::new(outer), Arc::new(inner)]).await;
    assert_eq!(run.blocks(), ["<hm>", "Let me look.", "[a try of `delete` was denied.]"]);
    assert_eq!(run.denials().0[0].policy, "outer");
    assert_eq!(opened(&run.chunks), [BlockKind::Reasoning, BlockKind::Text, BlockKind::Text]);
    // Policies without anything to do change nothing.
    let none = replacing(BlockKind::Citation, Vec::new());
    let empty = ReplaceText::new([("", "never"); 0]);
    let unchanged = of_nothing(none, empty).await;
    assert_eq!(unchanged, ["<hm>", "Let me look.", "(look {})"]);
}

async fn of_nothing(policy: BlockPolicy, words: ReplaceText) -> Vec<String> {
    run(answer(), vec![Arc::new(policy), Arc::new(words)]).await.blocks()
}
