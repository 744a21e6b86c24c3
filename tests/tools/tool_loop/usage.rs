//! Token counts: each round's own, and the turn's sum on completion.

use advisor_chain::messages::Usage;
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

fn two_rounds(first: Option<Usage>, second: Option<Usage>) -> ScriptedModel {
    let with = |answer: Answer, usage: Option<Usage>| match usage {
        Some(usage) => answer.delta(Delta::usage(usage)),
        None => answer,
    };
    ScriptedModel::new([
        with(Answer::new().call("c1", "look", "{}"), first).finish(FinishReason::ToolCalls),
        with(Answer::new().text("It is ").text("sunny."), second).finish(FinishReason::Stop),
    ])
}

async fn run(model: &ScriptedModel, mode: ToolCallStreaming) -> Run {
    let client = client(model, streaming(mode)).tool(tool("look", "sunny")).build().unwrap();
    read(client.prompt().user("go").stream()).await
}

const ALL: [ToolCallStreaming; 3] = MODES;

/// The final response says the sum and keeps its own content.
#[tokio::test]
async fn usage_is_summed_over_the_rounds() {
    for mode in ALL {
        let run = run(&two_rounds(Some(Usage::new(10, 20)), Some(Usage::new(1, 2))), mode).await;
        assert_eq!(run.response().usage(), Some(&Usage::new(11, 22)), "{mode:?}");
        assert_eq!(run.response().text(), "It is sunny.", "{mode:?}");
    }
}

/// Every count that a provider reports is summed; unreported counts stay absent.
#[tokio::test]
async fn cache_and_reasoning_counts_are_summed() {
    let usage = |cached, written, reasoning| {
        let mut usage = Usage::new(10, 5);
        (usage.cached_input_tokens, usage.cache_write_tokens, usage.reasoning_tokens) =
            (cached, written, reasoning);
        usage
    };
    let first = usage(Some(4), Some(3), None);
    let second = usage(Some(2), None, None);
    let run = run(&two_rounds(Some(first), Some(second)), ToolCallStreaming::TextOnly).await;
    let mut sum = Usage::new(20, 10);
    (sum.cached_input_tokens, sum.cache_write_tokens) = (Some(6), Some(3));
    assert_eq!(run.response().usage(), Some(&sum));
}

/// Usage in the middle of an answer is emitted once, at the end of the round, and moves no text. The
/// last value of a round wins.
#[tokio::test]
async fn usage_in_middle_of_answer() {
    let model = ScriptedModel::new([
        Answer::new().call("c1", "look", "{}").usage(10, 20).finish(FinishReason::ToolCalls),
        Answer::new()
            .text("It is ")
            .usage(1, 1)
            .text("sun")
            .usage(1, 2)
            .text("ny.")
            .finish(FinishReason::Stop),
    ]);
    let run = run(&model, ToolCallStreaming::All).await;
    let shown: Vec<_> = run.lines().into_iter().filter(|line| line.starts_with("usage")).collect();
    assert_eq!(shown, ["usage 1 10/20", "usage 2 1/2"]);
    assert_eq!(run.response().usage(), Some(&Usage::new(11, 22)));
    assert_eq!(run.response().text(), "It is sunny.");
}

/// A final round without usage still completes with the usage of the earlier rounds.
#[tokio::test]
async fn final_round_without_usage_completes_sum() {
    for mode in ALL {
        let run = run(&two_rounds(Some(Usage::new(10, 20)), None), mode).await;
        assert_eq!(run.response().usage(), Some(&Usage::new(10, 20)), "{mode:?}");
        let last_round = |chunk: &&Chunk| matches!(chunk, Chunk::Usage { round: 2, .. });
        assert_eq!(run.chunks.iter().filter(last_round).count(), 0, "{mode:?}: it had none of its own");
    }
    let run = run(&two_rounds(None, None), ToolCallStreaming::All).await;
    assert_eq!(run.response().usage(), None, "nothing reported is nothing, not zero");
}

/// A round's own response keeps its own counts; advisors inside see them, those outside the sum.
#[tokio::test]
async fn each_round_inside_loop_has_own_usage() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let looking = |name: &'static str, phase| {
        let seen = Arc::clone(&seen);
        from_fn(name, move |request: ChatRequest, next: AdvisorChain| {
            let seen = Arc::clone(&seen);
            async move {
                Ok(next.next_stream(request).await?.on_completed(move |response: ChatResponse| async move {
                    seen.lock().unwrap().push((name, *response.usage().unwrap()));
                    Ok(response)
                }))
            }
        })
        .with_placement(Placement::new(phase))
    };
    let model = two_rounds(Some(Usage::new(10, 20)), Some(Usage::new(1, 2)));
    let client = client(&model, ToolCallAdvisor::new())
        .advisor(looking("inner", Phase::Round))
        .advisor(looking("outer", Phase::Turn))
        .tool(tool("look", "sunny"));
    client.build().unwrap().prompt().user("go").call().await.unwrap();
    let expected =
        [("inner", Usage::new(10, 20)), ("inner", Usage::new(1, 2)), ("outer", Usage::new(11, 22))];
    assert_eq!(*seen.lock().unwrap(), expected);
}
