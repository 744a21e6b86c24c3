//! One answer: from bytes to chunks, and through a chain.

use std::collections::VecDeque;

use advisor_chain::chain::EditedChunks;
use advisor_chain::messages::{Delta, DeltaKind, MessageAggregator};
use advisor_chain::ollama::OllamaModel;
use advisor_chain::openai::OpenAiResponsesModel;
use advisor_chain::{
    AdvisorChain, ChatClient, ChatClientBuilder, ChatRequest, Chunk, FinishReason, Message, OpenAiModel,
    StreamAdvisor, from_fn,
};
use futures::StreamExt;
use serde::Deserialize;

use super::{Case, runtime};
use crate::{InMemory, Shape};

pub(super) const CHUNKS: (usize, usize) = (1000, 3000);

pub(super) fn cases() -> Vec<Case> {
    let mut cases: Vec<_> = Shape::ALL.into_iter().chain([Shape::STRANGE]).map(reading).collect();
    cases.extend(Shape::RESPONSES.map(reading_responses));
    cases.extend(Shape::OLLAMA.map(reading_ollama));
    cases.push(parsing());
    cases.push(aggregating("text", Delta::text));
    cases.push(aggregating("numbered text", |text| Delta::text(text).with_block(1)));
    cases.push(aggregating("arguments", |text| {
        DeltaKind::Arguments { index: Some(0), text: text.into() }.into()
    }));
    cases.extend([0, 1, 5].map(|count| answering(format!("answer, {count} that look"), count, looking)));
    cases.push(answering("answer, 5 that do not look".into(), 5, passing));
    cases.push(answering("answer, one that edits".into(), 1, editing));
    cases
}

/// The model alone: events to chunks.
fn reading(shape: Shape) -> Case {
    Case::new(format!("read, {}", shape.name), "event", CHUNKS, move |events| {
        answer(shape, events, ChatClient::builder)
    })
}

/// The same for the Responses API.
fn reading_responses(shape: Shape) -> Case {
    Case::new(format!("read, {}", shape.name), "event", CHUNKS, move |events| {
        let model = OpenAiResponsesModel::new("m").with_base_url("http://127.0.0.1:1/v1");
        let model = model.with_transport(InMemory::new([shape.responses_body(events)]));
        reading_all(ChatClient::builder(model).build().unwrap(), events)
    })
}

/// The same for Ollama's own API.
fn reading_ollama(shape: Shape) -> Case {
    Case::new(format!("read, {}", shape.name), "event", CHUNKS, move |events| {
        let model = OllamaModel::new("m").with_transport(InMemory::new([shape.ollama_body(events)]));
        reading_all(ChatClient::builder(model).build().unwrap(), events)
    })
}

/// Creates the case of a client that only parses every event into structs.
fn parsing() -> Case {
    Case::new("serde_json, into structs", "event", CHUNKS, |events| {
        let events: Vec<String> = (0..events).map(|number| Shape::STRANGE.event(number)).collect();
        move || {
            for event in events {
                std::hint::black_box(serde_json::from_str::<Event>(&event).unwrap());
            }
        }
    })
}

fn answering<A: StreamAdvisor>(name: String, count: usize, advisor: fn() -> A) -> Case {
    Case::new(name, "event", CHUNKS, move |events| {
        answer(Shape::OPENAI, events, move |model| {
            (0..count).fold(ChatClient::builder(model), |builder, _| builder.advisor(advisor()))
        })
    })
}

fn answer(
    shape: Shape,
    events: usize,
    chain: impl FnOnce(OpenAiModel) -> ChatClientBuilder,
) -> impl FnOnce() {
    reading_all(chain(model(shape, events)).build().unwrap(), events)
}

/// A model that answers with this number of events.
pub(super) fn model(shape: Shape, events: usize) -> OpenAiModel {
    let model = OpenAiModel::new("m").with_base_url("http://127.0.0.1:1/v1");
    model.with_transport(InMemory::new([shape.body(events)]))
}

/// Reads an answer with this number of pieces to its end.
pub(super) fn reading_all(client: ChatClient, events: usize) -> impl FnOnce() {
    let runtime = runtime();
    move || {
        runtime.block_on(async {
            let mut stream = client.chain().next_stream(ChatRequest::new(Message::user("?"))).await.unwrap();
            let mut pieces = 0;
            while let Some(chunk) = stream.next().await {
                pieces += usize::from(matches!(chunk.unwrap(), Chunk::Delta { .. }));
            }
            assert_eq!(pieces, events);
        });
    }
}

/// An advisor that looks at every chunk.
pub(super) fn looking() -> impl StreamAdvisor {
    from_fn("looking", |request: ChatRequest, next: AdvisorChain| async move {
        let mut texts = 0_usize;
        Ok(next.next_stream(request).await?.inspect_chunks(move |chunk: &Chunk| {
            texts += usize::from(chunk.text().is_some());
            std::hint::black_box(texts);
        }))
    })
}

/// An advisor that leaves the chunks alone.
fn passing() -> impl StreamAdvisor {
    from_fn(
        "passing",
        |request: ChatRequest, next: AdvisorChain| async move { next.next_stream(request).await },
    )
}

/// An advisor that could change every chunk, and changes none.
fn editing() -> impl StreamAdvisor {
    from_fn("editing", |request: ChatRequest, next: AdvisorChain| async move {
        Ok(next
            .next_stream(request)
            .await?
            .edit_with(|chunk: Chunk, out: &mut EditedChunks<'_>| out.push(chunk)))
    })
}

/// The aggregator alone.
fn aggregating(name: &str, piece: fn(&'static str) -> Delta) -> Case {
    Case::new(format!("aggregate, {name}"), "delta", CHUNKS, move |deltas| {
        let call = advisor_chain::messages::ToolCallDelta::start(0, "c", "f");
        let deltas: Vec<Delta> = std::iter::once(Delta::tool_call(call))
            .chain((0..deltas).map(|_| piece(" word")))
            .chain([Delta::finish(FinishReason::Stop)])
            .collect();
        move || {
            let (mut aggregator, mut chunks) = (MessageAggregator::new(1), VecDeque::new());
            for delta in deltas {
                aggregator.push(delta, &mut chunks).unwrap();
                chunks.clear();
            }
            std::hint::black_box(aggregator.finish(&mut chunks).unwrap());
        }
    })
}

/// An event as clients of this format have it.
#[derive(Deserialize)]
#[allow(dead_code, reason = "a client would read them")]
struct Event {
    id: String,
    object: String,
    created: u64,
    model: String,
    service_tier: Option<String>,
    system_fingerprint: Option<String>,
    choices: Vec<Choice>,
    usage: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "a client would read them")]
struct Choice {
    index: u32,
    delta: Said,
    logprobs: Option<serde_json::Value>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "a client would read them")]
struct Said {
    role: Option<String>,
    content: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<serde_json::Value>>,
}
