//! Wrong advisors and chains, of which the kit that injects faults lets none pass.

use std::sync::{Arc, Mutex};

use advisor_conformance::crash::{Leaves, Scenario, every_point_of_advisor, every_point_of_chain};
use advisor_core::{
    AdvisorChain, ChatClient, ChatRequest, ChatResponse, Chunk, ChunkFold, ChunkStream, Error, FinishReason,
    Message, Phase, Placement, StreamAdvisor, ToolDefinition, from_fn,
};
use futures::{StreamExt, TryStreamExt, future, stream};
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

#[tokio::test]
#[should_panic(expected = "TheLastTurnIsUnchanged does not hold")]
async fn a_cache_that_confuses_questions_is_found() {
    every_point_of_advisor(confuses_questions, Scenario::PLAIN, &[]).await;
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

#[tokio::test]
#[should_panic(expected = "ShownIsRemembered does not hold: \"All done.\" was shown in round 2")]
async fn unreported_second_model_call_is_detected() {
    let wrong = || asks_twice(|_| Vec::new(), |_, second| second);
    every_point_of_advisor(wrong, Scenario::PLAIN, &[]).await;
}

#[tokio::test]
#[should_panic(
    expected = "ShownIsRemembered does not hold: \"All done.\" is reported for round 1, and None was shown"
)]
async fn reporting_void_answer_is_detected() {
    let wrong = || asks_twice(void, |first, _| first);
    every_point_of_advisor(wrong, Scenario::PLAIN, &[]).await;
}

#[tokio::test]
#[should_panic(expected = "ShownIsRemembered does not hold")]
async fn voiding_wrong_round_is_detected() {
    let wrong = || asks_twice(|round| void(round + 1), |_, second| second);
    every_point_of_advisor(wrong, Scenario::PLAIN, &[]).await;
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

#[tokio::test]
#[should_panic(expected = "ShownIsRemembered does not hold")]
async fn stopping_with_text_never_shown_is_detected() {
    every_point_of_advisor(stops_with_other_words, Scenario::PLAIN, &[]).await;
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

#[tokio::test]
#[should_panic(expected = "ShownIsRemembered does not hold: \"Something else.\" is reported for round 1")]
async fn different_answer_is_found() {
    every_point_of_advisor(answers_differently, Scenario::PLAIN, &[]).await;
}

/// Treats the part of a broken answer as a complete answer.
fn takes_a_part_for_the_whole() -> impl StreamAdvisor {
    from_fn("takes-a-part-for-the-whole", |request: ChatRequest, next: AdvisorChain| async move {
        let mut shown = ChunkFold::new();
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

#[tokio::test]
#[should_panic(expected = "FailuresEndTheTurn does not hold: the loop receives it as complete")]
async fn treating_partial_answer_as_complete_is_detected() {
    every_point_of_advisor(takes_a_part_for_the_whole, Scenario::PLAIN, &[]).await;
}

/// Answers without the model, outside the loop, when the turn has failed.
fn glosses_over() -> impl StreamAdvisor {
    from_fn("glosses-over", |request: ChatRequest, next: AdvisorChain| async move {
        let apology = ChatResponse::new(0, Message::assistant("Sorry."), FinishReason::Stop);
        let answer = next.next_stream(request.clone()).await;
        Ok(answer.unwrap_or_else(|_| request.answer(apology)))
    })
}

#[tokio::test]
#[should_panic(expected = "FailuresEndTheTurn does not hold")]
async fn hiding_failed_turn_is_detected() {
    every_point_of_advisor(glosses_over, Scenario::PLAIN, &[]).await;
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

#[tokio::test]
#[should_panic(expected = "FailuresEndTheTurn does not hold: a tool starts or the model is asked")]
async fn retrying_after_store_failure_is_detected() {
    every_point_of_advisor(asks_again_after_everything, Scenario::PLAIN, &[]).await;
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

#[tokio::test]
#[should_panic(expected = "TheLastTurnWorks does not hold: the last turn does not complete")]
async fn one_that_answers_one_turn_is_found() {
    every_point_of_advisor(answers_once, Scenario::PLAIN, &[]).await;
}

#[tokio::test]
#[should_panic(expected = "the chain does not use `tools` of its leaves")]
async fn chain_with_own_tools_is_detected() {
    let make = |leaves: &Leaves| {
        let definition = ToolDefinition::new("work", "A tool.", serde_json::json!({"type": "object"}));
        let own = FnTool::new(definition, |_: serde_json::Value| async { Ok("worked") });
        let client = ChatClient::builder(Arc::clone(&leaves.model)).tool(own);
        client.advisor(leaves.tool_loop().build()?).advisor(leaves.memory()).build()
    };
    every_point_of_chain(make, Scenario::ROUND, &[]).await;
}

#[tokio::test]
#[should_panic(expected = "the chain does not use `tools` of its leaves")]
async fn chain_that_never_completes_call_is_detected() {
    let make = |leaves: &Leaves| {
        let hands_out = leaves.tool_loop().eligible(|_| false).build()?;
        leaves.client().advisor(hands_out).advisor(leaves.memory()).build()
    };
    every_point_of_chain(make, Scenario::ROUND, &[]).await;
}
