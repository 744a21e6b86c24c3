//! Tests advisors of users with the crash macros: a cache, one that asks again, one that stops, a redactor, a
//! fallback. None is written for the kit, and all invariants are checked.

use std::collections::HashMap;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use advisor_chain::chain::FallbackModel;
use advisor_chain::messages::Text;
use advisor_chain::retrieval::{
    Document, Embedding, EmbeddingModel, InMemoryVectors, PastTurns, Query, Retrieval,
};
use advisor_chain::stream_policy::{Guard, LetterCase};
use advisor_conformance::crash::{AwaitPoints, Leaves, Scenario, every_point_of_advisor};
use advisor_conformance::{crash_points_of_advisor, crash_points_of_chain};
use advisor_testkit::WordEmbeddings;
use advisor_tests::editors::Calling;
use advisor_tests::prelude::*;
use async_trait::async_trait;
use futures::Stream;
use futures::future::BoxFuture;

/// Keeps complete answers by their request, and returns them again.
fn cache() -> impl StreamAdvisor {
    let answers: Arc<Mutex<HashMap<String, ChatResponse>>> = Arc::default();
    from_fn("cache", move |request: ChatRequest, next: AdvisorChain| {
        let answers = Arc::clone(&answers);
        async move {
            let asked: Vec<_> = request.messages.iter().map(Message::text).collect();
            let asked = asked.join("\n");
            let known = answers.lock().unwrap().get(&asked).cloned();
            if let Some(answer) = known {
                return Ok(request.answer(answer));
            }
            let answer = next.next_stream(request).await?;
            Ok(answer.on_completed(move |response| async move {
                answers.lock().unwrap().insert(asked, response.clone());
                Ok(response)
            }))
        }
    })
    .with_placement(Placement::new(Phase::ModelCall))
}

mod a_cache {
    super::crash_points_of_advisor!(super::cache());
}

mod a_cache_that_is_asked_twice {
    // Users say something else in every turn, so only who asks twice is answered by the cache.
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let client = leaves.client().advisor(super::re_asks()).advisor(super::cache());
        client.advisor(leaves.tool_loop().build()?).advisor(leaves.memory()).build()
    });
}

/// Asks once more for an answer that lacks something. The first answer streams, and is void when the second begins.
fn re_asks() -> impl StreamAdvisor {
    from_fn("re-asks", |request: ChatRequest, next: AdvisorChain| async move {
        let first = next.next_stream(request.clone()).await?;
        Ok(ChunkStream::new(ReAsked { live: Some(first), again: Again::Possible(Box::new((request, next))) }))
    })
    .with_placement(Placement::new(Phase::ModelCall))
}

struct ReAsked {
    live: Option<ChunkStream>,
    again: Again,
}

enum Again {
    Possible(Box<(ChatRequest, AdvisorChain)>),
    Asking(BoxFuture<'static, Result<ChunkStream>>),
    Asked,
}

impl Stream for ReAsked {
    type Item = Result<Chunk>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Again::Asking(asking) = &mut this.again {
            let answer = ready!(asking.as_mut().poll(cx));
            this.again = Again::Asked;
            match answer {
                Ok(second) => this.live = Some(second),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        let Some(live) = &mut this.live else { return Poll::Ready(None) };
        let item = ready!(Pin::new(live).poll_next(cx));
        let Some(Ok(Chunk::Completed(response))) = &item else { return Poll::Ready(item) };
        if response.text().contains("Sources:") {
            return Poll::Ready(item);
        }
        match std::mem::replace(&mut this.again, Again::Asked) {
            Again::Possible(possible) => {
                let (request, next) = *possible;
                let void = Chunk::AttemptRestarted { round: response.round() };
                let request = request.with_system("Name your sources.");
                this.live = None;
                this.again = Again::Asking(async move { next.next_stream(request).await }.boxed());
                Poll::Ready(Some(Ok(void)))
            }
            _ => Poll::Ready(item),
        }
    }
}

mod one_that_re_asks {
    super::crash_points_of_advisor!(super::re_asks());
}

mod one_that_re_asks_for_each_round {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let client = leaves.client().advisor(leaves.tool_loop().build()?).advisor(leaves.memory());
        client.advisor_in(super::Phase::Round, super::re_asks()).build()
    });
}

mod one_that_re_asks_around_the_tool_loop {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let client = leaves.client().advisor_in(super::Phase::Turn, super::re_asks());
        client.advisor(leaves.tool_loop().build()?).advisor(leaves.memory()).build()
    });
}

/// Ends an answer at the first chunk for which this is so.
fn stops(at: fn(&Chunk) -> bool) -> impl StreamAdvisor {
    from_fn("stops", move |request: ChatRequest, next: AdvisorChain| async move {
        let answer = next.next_stream(request).await?;
        Ok(answer.end_when(move |chunk| at(chunk).then_some(FinishReason::ContentFilter)))
    })
    .with_placement(Placement::new(Phase::ModelCall))
}

/// Before a call is complete.
fn calls(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Opened { head, .. } if head.kind == BlockKind::ToolCall)
}

/// Returns whether a chunk ends one call or begins the next one.
fn calls_more(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Opened { block, head } if head.kind == BlockKind::ToolCall && block.position() > 1)
}

fn says_much(chunk: &Chunk) -> bool {
    chunk.text().is_some_and(|text| text.contains("done"))
}

fn says_anything(chunk: &Chunk) -> bool {
    chunk.text().is_some()
}

mod one_that_stops_before_a_call {
    super::crash_points_of_advisor!(super::stops(super::calls));
}

mod one_that_stops_between_calls {
    super::crash_points_of_advisor!(super::stops(super::calls_more));
}

mod one_that_stops_in_the_middle_of_a_text {
    super::crash_points_of_advisor!(super::stops(super::says_much));
}

mod one_that_lets_nothing_be_said {
    super::crash_points_of_advisor!(super::stops(super::says_anything));
}

/// Replaces words while they stream.
fn redacts() -> impl StreamAdvisor {
    ReplaceText::new([("l done", "l [done]"), ("Round", "[round]"), ("Fine", "[fine]")])
}

mod a_redactor {
    super::crash_points_of_advisor!(super::redacts());
}

/// Ends an answer at a word, with a reply.
fn ends_at(word: &str) -> impl StreamAdvisor + use<> {
    Guard::for_words([word], LetterCase::Exact).on_output()
}

mod a_guard_that_ends_the_last_answer {
    super::crash_points_of_advisor!(super::ends_at("l done"));
}

mod a_guard_that_ends_answers_with_calls {
    super::crash_points_of_advisor!(super::ends_at("ound"));
}

mod a_guard_with_memory_outside {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let client = leaves.client().advisor(super::ends_at("l done"));
        let client = client.advisor(leaves.tool_loop().build()?);
        client.advisor_in(super::Phase::Turn, leaves.memory()).build()
    });
}

/// Judges each call, while everything else streams on. `work` may run, others become a text.
fn judges(points: AwaitPoints) -> impl StreamAdvisor {
    BlockPolicy::new(move |pending: PendingBlock| {
        let points = points.clone();
        async move {
            // An await point: the turn also stops while a judge works.
            let is_reached = points.pass("judge").await.is_ok();
            let is_allowed = is_reached && pending.call().is_some_and(|call| call.name == "work");
            Ok(if is_allowed { Verdict::Allow } else { Verdict::deny("") })
        }
    })
}

mod one_that_judges_inside_memory {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let client = leaves.client().advisor(super::judges(leaves.points.clone()));
        client.advisor(leaves.tool_loop().build()?).advisor(leaves.memory()).build()
    });
}

mod one_that_judges_with_memory_outside {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let client = leaves.client().advisor(super::judges(leaves.points.clone()));
        let client = client.advisor(leaves.tool_loop().build()?);
        client.advisor_in(super::Phase::Turn, leaves.memory()).build()
    });
}

/// Retrieves with a retriever that waits. The final answers name its document, so they have citations.
fn retrieves(points: AwaitPoints) -> Retrieval {
    Retrieval::new(move |query: Query| {
        let points = points.clone();
        async move {
            points.pass("retriever").await?;
            Ok(vec![Document::new("echo", query.text)])
        }
    })
}

/// Replaces a word of each answer by a number in brackets.
fn names_documents() -> ReplaceText {
    ReplaceText::for_words([("all", "[1]")], LetterCase::Ignore)
}

mod one_that_retrieves {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let client = leaves.client().advisor(super::retrieves(leaves.points.clone()));
        let client = client.advisor(super::names_documents()).advisor(leaves.tool_loop().build()?);
        client.advisor(leaves.memory()).build()
    });
}

mod one_that_retrieves_with_memory_outside {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let client = leaves.client().advisor(super::retrieves(leaves.points.clone()));
        let client = client.advisor(super::names_documents()).advisor(leaves.tool_loop().build()?);
        client.advisor_in(super::Phase::Turn, leaves.memory()).build()
    });
}

/// An embedding model that waits.
struct Waiting(AwaitPoints);

#[async_trait]
impl EmbeddingModel for Waiting {
    async fn embed(&self, texts: &[Text]) -> Result<Vec<Embedding>> {
        self.0.pass("embeddings").await?;
        WordEmbeddings::new().embed(texts).await
    }
}

mod one_that_remembers_past_turns {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let past =
            super::PastTurns::new(super::Waiting(leaves.points.clone()), super::InMemoryVectors::new());
        let client = leaves.client().advisor(past).advisor(leaves.tool_loop().build()?);
        client.advisor(leaves.memory()).build()
    });
}

/// Makes calls of the words in brackets.
fn calls_in_text() -> impl StreamAdvisor {
    from_fn("calls in text", |request: ChatRequest, next: AdvisorChain| async move {
        Ok(next.next_stream(request).await?.edit_with(Calling::default()))
    })
    .with_placement(Placement::new(Phase::ModelCall))
}

#[tokio::test]
async fn law_k4_m6_every_point_of_turns_with_calls_in_text() {
    let scenario = Scenario::new("calls in text", || {
        let calls = Answer::new().text("I [wo").text("rk] and [once].").finish(FinishReason::Stop);
        vec![calls, Answer::new().text("All ").text("done.").finish(FinishReason::Stop)]
    });
    assert!(every_point_of_advisor(calls_in_text, scenario, &[]).await > 0);
}

/// The leaves' client around a model of one's own.
fn client_of(model: impl ChatModel, leaves: &Leaves) -> Result<ChatClient> {
    let client = ChatClient::builder(model).tools(&leaves.tools).advisor(leaves.tool_loop().build()?);
    client.advisor(leaves.memory()).build()
}

/// A model that is never there.
struct Down;

#[async_trait]
impl ChatModel for Down {
    async fn stream(&self, _: ChatRequest) -> Result<ChunkStream> {
        Err(Error::new(ErrorKind::Connection, "the server cannot be reached"))
    }
}

mod a_fallback_from_a_model_that_is_down {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        super::client_of(super::FallbackModel::new(super::Down).with_fallback(leaves.model.clone()), leaves)
    });
}

mod a_fallback_before_output {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let model = super::FallbackModel::new(leaves.model.clone()).with_fallback(leaves.model.clone());
        super::client_of(model, leaves)
    });
}

mod a_fallback_after_output {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let model = super::FallbackModel::new(leaves.model.clone()).with_fallback(leaves.model.clone());
        super::client_of(model.with_restart_after_output(), leaves)
    });
}

/// Asks again when the model fails before it has shown anything.
fn retries() -> impl StreamAdvisor {
    from_fn("retries", |request: ChatRequest, next: AdvisorChain| async move {
        match next.next_stream(request.clone()).await {
            Err(error) if error.is_retryable() => next.next_stream(request).await,
            answer => answer,
        }
    })
    .with_placement(Placement::new(Phase::ModelCall))
}

mod a_retry {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let client = leaves.client().advisor(super::retries());
        client.advisor(leaves.tool_loop().build()?).advisor(leaves.memory()).build()
    });
}

/// Answers without the model.
fn guards() -> impl StreamAdvisor {
    from_fn("guards", |request: ChatRequest, _: AdvisorChain| async move {
        let refusal = Message::assistant("I do not talk about that.");
        Ok(request.answer(ChatResponse::new(0, refusal, FinishReason::Refusal)))
    })
    .with_placement(Placement::new(Phase::ModelCall))
}

mod a_guard_that_never_asks {
    super::crash_points_of_advisor!(super::guards());
}
