//! Wrong advisors and chains, of which the kit that injects faults lets none pass.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use advisor_conformance::crash::{Leaves, Scenario, every_point_of_advisor, every_point_of_chain};
use advisor_core::{
    AdvisorChain, ChatClient, ChatRequest, ChatResponse, Chunk, ChunkFold, ChunkStream, Error, FinishReason,
    Message, Phase, Placement, StreamAdvisor, ToolDefinition, from_fn,
};
use futures::{FutureExt, StreamExt, TryStreamExt, future, stream};
use tool_call_advisor::FnTool;

fn beside_the_model() -> Placement {
    Placement::new(Phase::ModelCall)
}

/// A cache that takes every question for the same one.
fn confuses_questions() -> impl StreamAdvisor {
    let kept: Arc<Mutex<Option<ChatResponse>>> = Arc::default();
    from_fn("confuses-questions", move |request: ChatRequest, next: AdvisorChain| {
        let kept = Arc::clone(&kept);
        async move {
            let known = kept.lock().unwrap().clone();
            if let Some(answer) = known {
                return Ok(request.answer(answer));
            }
            Ok(next.next_stream(request).await?.on_completed(move |response| async move {
                *kept.lock().unwrap() = Some(response.clone());
                Ok(response)
            }))
        }
    })
    .with_placement(beside_the_model())
}

/// Asks twice. `between` gives the chunks between the answers, and `tells` selects the response at the end.
fn asks_twice(
    between: fn(u32) -> Vec<Chunk>,
    tells: fn(ChatResponse, ChatResponse) -> ChatResponse,
) -> impl StreamAdvisor {
    from_fn("asks-twice", move |request: ChatRequest, next: AdvisorChain| async move {
        let (first, one) = up_to_its_end(next.next_stream(request.clone()).await?).await?;
        let (second, other) = up_to_its_end(next.next_stream(request).await?).await?;
        let between = between(one.round());
        let end = Chunk::Completed(tells(one, other));
        let chunks = first.into_iter().chain(between).chain(second).chain([end]);
        Ok(ChunkStream::new(stream::iter(chunks.map(Ok))))
    })
    .with_placement(beside_the_model())
}

async fn up_to_its_end(answer: ChunkStream) -> advisor_core::Result<(Vec<Chunk>, ChatResponse)> {
    let mut chunks: Vec<Chunk> = answer.try_collect().await?;
    match chunks.pop() {
        Some(Chunk::Completed(response)) => Ok((chunks, response)),
        _ => Err(Error::advisor("an answer has no end")),
    }
}

fn void(round: u32) -> Vec<Chunk> {
    vec![Chunk::AttemptRestarted { round }]
}

#[tokio::test]
async fn one_that_asks_twice_and_says_so_passes() {
    let right = || asks_twice(void, |_, second| second);
    every_point_of_advisor(right, Scenario::ROUND, &[]).await;
}

/// Ends an answer with other words than those that were shown of it.
fn stops_with_other_words() -> impl StreamAdvisor {
    from_fn("stops-with-other-words", |request: ChatRequest, next: AdvisorChain| async move {
        let says_much = |chunk: &Chunk| chunk.text().is_some_and(|text| text.contains("done"));
        let answer = next.next_stream(request).await?;
        let stopped = answer.end_when(move |chunk| says_much(chunk).then_some(FinishReason::ContentFilter));
        Ok(stopped.on_completed(|response| async move {
            let other = Message::assistant("I stopped.");
            Ok(ChatResponse::new(response.round(), other, FinishReason::ContentFilter))
        }))
    })
    .with_placement(beside_the_model())
}

/// Changes only the answer that the caller receives, not the shown or stored one.
fn answers_differently() -> impl StreamAdvisor {
    from_fn("answers-differently", |request: ChatRequest, next: AdvisorChain| async move {
        Ok(next.next_stream(request).await?.on_completed(|response| async move {
            let other = Message::assistant("Something else.");
            Ok(ChatResponse::new(response.round(), other, FinishReason::Stop))
        }))
    })
}

/// Treats the part of a broken answer as a complete answer.
fn takes_a_part_for_the_whole() -> impl StreamAdvisor {
    from_fn("takes-a-part-for-the-whole", |request: ChatRequest, next: AdvisorChain| async move {
        let mut shown = ChunkFold::default();
        let answer = next.next_stream(request).await?;
        let whole = answer.map(move |item| {
            let chunk = item.unwrap_or_else(|_| {
                let blocks = shown.blocks(1).into_iter().map(|(_, block)| block).collect();
                let message = Message::assistant_blocks(blocks);
                Chunk::Completed(ChatResponse::new(1, message, FinishReason::Stop))
            });
            shown.push(&chunk);
            Ok(chunk)
        });
        Ok(ChunkStream::new(whole))
    })
    .with_placement(beside_the_model())
}

/// Answers without the model, outside the loop, when the turn has failed.
fn glosses_over() -> impl StreamAdvisor {
    from_fn("glosses-over", |request: ChatRequest, next: AdvisorChain| async move {
        let apology = ChatResponse::new(0, Message::assistant("Sorry."), FinishReason::Stop);
        let answer = next.next_stream(request.clone()).await;
        Ok(answer.unwrap_or_else(|_| request.answer(apology)))
    })
}

/// Asks again after any failure, also one of a store.
fn asks_again_after_everything() -> impl StreamAdvisor {
    from_fn("asks-again-after-everything", |request: ChatRequest, next: AdvisorChain| async move {
        match next.next_stream(request.clone()).await {
            Err(_) => next.next_stream(request).await,
            answer => answer,
        }
    })
    .with_placement(Placement::new(Phase::Round))
}

/// Answers one turn.
fn answers_once() -> impl StreamAdvisor {
    let asked = Mutex::new(0);
    from_fn("answers-once", move |request: ChatRequest, next: AdvisorChain| {
        let turns = {
            let mut asked = asked.lock().unwrap();
            *asked += 1;
            *asked
        };
        match turns {
            1 => Box::pin(async move { next.next_stream(request).await }) as future::BoxFuture<'_, _>,
            _ => Box::pin(future::ready(Err(Error::advisor("enough")))),
        }
    })
}

/// Fails unless the kit finds the fault, in these words.
async fn refused(cases: impl Future<Output = usize>, words: &str) {
    let panic = AssertUnwindSafe(cases).catch_unwind().await.expect_err(words);
    let found = panic.downcast::<String>().unwrap();
    assert!(found.contains(words), "{found}\n  in place of: {words}");
}

async fn wrong<A: StreamAdvisor>(make: fn() -> A, words: &str) {
    refused(every_point_of_advisor(make, Scenario::PLAIN, &[]), words).await;
}

#[tokio::test]
async fn each_wrong_advisor_is_refused() {
    wrong(confuses_questions, "TheLastTurnIsUnchanged does not hold").await;
    let twice = "ShownIsRemembered does not hold: \"All done.\" was shown in round 2";
    wrong(|| asks_twice(|_| Vec::new(), |_, second| second), twice).await;
    wrong(|| asks_twice(void, |first, _| first), "\"All done.\" is reported for round 1, and None was shown")
        .await;
    wrong(|| asks_twice(|round| void(round + 1), |_, second| second), "ShownIsRemembered does not hold")
        .await;
    wrong(stops_with_other_words, "ShownIsRemembered does not hold").await;
    wrong(answers_differently, "\"Something else.\" is reported for round 1").await;
    wrong(takes_a_part_for_the_whole, "FailuresEndTheTurn does not hold: the loop receives it as complete")
        .await;
    wrong(glosses_over, "FailuresEndTheTurn does not hold").await;
    wrong(
        asks_again_after_everything,
        "FailuresEndTheTurn does not hold: a tool starts or the model is asked",
    )
    .await;
    wrong(answers_once, "TheLastTurnWorks does not hold: the last turn does not complete").await;
}

#[tokio::test]
async fn chain_without_the_tools_of_its_leaves_is_refused() {
    let own_tools = |leaves: &Leaves| {
        let definition = ToolDefinition::new("work", "A tool.", serde_json::json!({"type": "object"}));
        let own = FnTool::new(definition, |_: serde_json::Value| async { Ok("worked") });
        let client = ChatClient::builder(Arc::clone(&leaves.model)).tool(own);
        client.advisor(leaves.tool_loop().build()?).advisor(leaves.memory()).build()
    };
    let runs_none = |leaves: &Leaves| {
        let hands_out = leaves.tool_loop().eligible(|_| false).build()?;
        leaves.client().advisor(hands_out).advisor(leaves.memory()).build()
    };
    let words = "the chain does not use `tools` of its leaves";
    refused(every_point_of_chain(own_tools, Scenario::ROUND, &[]), words).await;
    refused(every_point_of_chain(runs_none, Scenario::ROUND, &[]), words).await;
}
