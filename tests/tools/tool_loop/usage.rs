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

/// The final response says the sum of every count that a provider reports; a count that none reports stays absent.
#[tokio::test]
async fn usage_is_summed_over_the_rounds() {
    let usage = |input, output, cached, written| {
        let mut usage = Usage::new(input, output);
        (usage.cached_input_tokens, usage.cache_write_tokens) = (cached, written);
        Some(usage)
    };
    for (first, second, sum) in [
        (usage(10, 20, None, None), usage(1, 2, None, None), usage(11, 22, None, None)),
        (usage(10, 5, Some(4), Some(3)), usage(10, 5, Some(2), None), usage(20, 10, Some(6), Some(3))),
        (usage(10, 20, None, None), None, usage(10, 20, None, None)),
        (None, None, None),
    ] {
        for mode in MODES {
            let run = run(&two_rounds(first, second), mode).await;
            assert_eq!(run.response().usage.as_ref(), sum.as_ref(), "{mode:?}");
            assert_eq!(run.response().text(), "It is sunny.", "{mode:?}");
            let has_own = run.chunks.iter().any(|chunk| matches!(chunk, Chunk::Usage { round: 2, .. }));
            assert!(second.is_some() || !has_own, "{mode:?}: the last round had none");
        }
    }
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
    assert_eq!(run.response().usage, Some(Usage::new(11, 22)));
    assert_eq!(run.response().text(), "It is sunny.");
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
                    seen.lock().unwrap().push((name, *response.usage.as_ref().unwrap()));
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
