//! Recorded streams of real servers, read by the provider's model and written for clients: every encoder keeps the rules
//! of its protocol. They also do for streams that a policy changed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use advisor_chain::anthropic::AnthropicModel;
use advisor_chain::gemini::GeminiModel;
use advisor_chain::messages::{Block, ToolCall};
use advisor_chain::ollama::OllamaModel;
use advisor_chain::openai::OpenAiResponsesModel;
use advisor_chain::stream_policy::{BlockPolicy, Guard, PendingBlock, ReplaceText, Verdict};
use advisor_chain::{
    AdvisorChain, ChatModel, ChatRequest, Chunk, FinishReason, Message, OpenAiModel, Result, StreamAdvisor,
};
use advisor_sse::Frames;
use advisor_testkit::ReplayServer;
use advisor_testkit::recordings::{self, Recording};
use futures::StreamExt;
use futures::future::{join, join_all};

use crate::table::{encode, protocols};

const LIMIT: Duration = Duration::from_secs(60);
const DENIED: &str = "[denied]";

/// Returns the model that reads a recording, at this address.
fn model(recording: &Recording, url: &str) -> Arc<dyn ChatModel> {
    match recording.api.as_str() {
        "openai-chat" => Arc::new(OpenAiModel::new("m").with_base_url(url)),
        "openai-responses" => Arc::new(OpenAiResponsesModel::new("m").with_base_url(url)),
        "anthropic-messages" => Arc::new(AnthropicModel::new("m").with_base_url(url)),
        "gemini" => Arc::new(GeminiModel::new("m").with_base_url(url)),
        _ => Arc::new(OllamaModel::new("m").with_base_url(url)),
    }
}

/// Policies that a recording passes, the first one outermost, with a name.
type Policies = (&'static str, Vec<Arc<dyn StreamAdvisor>>);

fn judged(judge: impl Fn(&PendingBlock) -> Verdict + Send + Sync + 'static) -> Arc<dyn StreamAdvisor> {
    let policy = BlockPolicy::new(move |pending: PendingBlock| {
        let verdict = judge(&pending);
        async move { Ok(verdict) }
    });
    Arc::new(policy.with_denial_text(|_| DENIED.to_owned()))
}

fn policies() -> [Policies; 5] {
    let second = |pending: &PendingBlock| match pending.id.position() % 2 {
        0 => Verdict::Allow,
        _ => Verdict::deny(""),
    };
    let words = ReplaceText::for_pattern("[a-z]{3}", "[word]").unwrap();
    let blocks = || vec![Block::text(DENIED), ToolCall::new("", "other", "{}").into(), Block::text(DENIED)];
    let ending = judged(|_| Verdict::EndAnswer(FinishReason::ContentFilter));
    let guard = Guard::for_pattern("[a-z]{3} [a-z]").unwrap();
    [
        ("every second call denied, words replaced", vec![judged(second), Arc::new(words)]),
        ("all calls denied", vec![judged(|_| Verdict::deny(""))]),
        ("calls replaced", vec![judged(move |_| Verdict::Replace(blocks()))]),
        ("ended by a call", vec![ending]),
        ("ended by a guard", vec![Arc::new(guard.with_reply(DENIED).on_output())]),
    ]
}

/// Reads a recording to its end, through these policies. One that cannot be read at all has no chunk.
async fn items(recording: &Recording, policies: &[Arc<dyn StreamAdvisor>]) -> Vec<Result<Chunk>> {
    // A model that asks again gets the same answer.
    let server = ReplayServer::start((0..3).map(|_| recording.reply())).await.unwrap();
    let request = ChatRequest::new(Message::user("Hello"));
    let chain = AdvisorChain::builder(model(recording, &server.url()));
    let chain = policies.iter().fold(chain, |chain, policy| chain.shared_advisor(Arc::clone(policy)));
    match chain.build().unwrap().next_stream(request).await {
        Ok(stream) => tokio::time::timeout(LIMIT, stream.collect()).await.unwrap(),
        Err(error) => vec![Err(error)],
    }
}

async fn check(api: &str) {
    let policies = policies();
    let mut changed = BTreeMap::<&str, usize>::new();
    let recordings = recordings::all(api);
    for recording in recordings.iter().filter(|recording| api != "other" || recording.provider == "ollama") {
        let edited = join_all(policies.iter().map(|(_, advisors)| items(recording, advisors)));
        let (plain, edited) = join(items(recording, &[]), edited).await;
        check_protocols(&plain, &recording.name);
        for ((policy, _), items) in policies.iter().zip(edited) {
            check_protocols(&items, &format!("{}, {policy}", recording.name));
            *changed.entry(policy).or_default() += usize::from(shown(&items) != shown(&plain));
        }
    }
    let unused: Vec<_> = changed.iter().filter(|(_, times)| **times == 0).collect();
    assert!(unused.is_empty(), "policies that change no recording: {unused:?}");
}

fn check_protocols(items: &[Result<Chunk>], name: &str) {
    let is_denied = shown(items).0.contains(DENIED);
    for (protocol, encoder, check) in protocols() {
        let stream = encode(encoder(), Frames::new(), items);
        assert_eq!(check(&stream, items), Ok(()), "{name} in {protocol}:\n{stream}");
        assert_eq!(stream.contains(DENIED), is_denied, "{name} in {protocol}:\n{stream}");
    }
}

/// Returns the text and the number of calls.
fn shown(items: &[Result<Chunk>]) -> (String, usize) {
    let chunks = || items.iter().filter_map(|item| item.as_ref().ok());
    let is_call = |chunk: &&Chunk| matches!(chunk, Chunk::Opened { head, .. } if head.call.is_some());
    (chunks().filter_map(Chunk::text).collect(), chunks().filter(is_call).count())
}

#[tokio::test]
async fn chat_completions_are_written_for_every_client() {
    check("openai-chat").await;
}

#[tokio::test]
async fn responses_are_written_for_every_client() {
    check("openai-responses").await;
}

#[tokio::test]
async fn messages_are_written_for_every_client() {
    check("anthropic-messages").await;
}

#[tokio::test]
async fn gemini_is_written_for_every_client() {
    check("gemini").await;
}

#[tokio::test]
async fn ollama_is_written_for_every_client() {
    check("other").await;
}
