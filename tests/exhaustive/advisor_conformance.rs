//! Runs the conformance suite of advisors on every advisor of the workspace, and on those of the examples.

use std::future::ready;
use std::panic::AssertUnwindSafe;
use std::sync::{LazyLock, mpsc};

use advisor_chain::advisors::{Budget, OnlyTools, RateLimit, ReReading, Retry, SystemTemplate, ToolSearch};
use advisor_chain::chain::{Backoff, FallbackModel, context_fn};
use advisor_chain::mcp::{ChainServer, McpServer, McpTools};
use advisor_chain::retrieval::{Document, InMemoryVectors, PastTurns, Query, Retrieval};
use advisor_chain::stream_policy::{Guard, LetterCase};
use advisor_chain::structured::{OutputFormat, StructuredOutput};
use advisor_chain::tools::tools_fn;
use advisor_conformance::advisor::*;
use advisor_examples::advisors::{
    Cache, Logged, Permits, Stopwatch, ask_again, first_text, guard, once_more, polite, redaction, retrieval,
    stopping,
};
use advisor_testkit::WordEmbeddings;
use advisor_tests::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

use Declaration::{
    AnswersItself, AsksAgain, DependsOnPieces, EditsAnswers, EditsRequests, HandlesErrors, HoldsBackAnswers,
    HoldsBackBlocks, HoldsBackBytes,
};

/// Runs every clause of the suite on each advisor, and names those that fail.
async fn conform(subjects: Vec<(&'static str, Subject)>) {
    let mut failed = Vec::new();
    for (name, subject) in &subjects {
        for (clause, checked) in clauses(subject) {
            if AssertUnwindSafe(checked).catch_unwind().await.is_err() {
                failed.push(format!("{name}: {clause}"));
            }
        }
    }
    assert!(failed.is_empty(), "the panics above say why: {failed:#?}");
}

#[tokio::test]
async fn advisors_of_the_workspace_conform() {
    conform(of_the_workspace()).await;
}

#[tokio::test]
async fn advisors_of_the_examples_conform() {
    conform(of_the_examples()).await;
}

/// The advisors of the workspace, by what they do.
fn of_the_workspace() -> Vec<(&'static str, Subject)> {
    vec![
        (
            "words that are replaced",
            Subject::new(|| ReplaceText::new([("Oslo", "[city]"), ("windy", "calm")]))
                .with_declared([EditsAnswers, HoldsBackBytes(4)]),
        ),
        (
            "words that do not occur",
            Subject::new(|| ReplaceText::new([("worm", "[animal]"), ("order", "[order]")]))
                .with_declared([HoldsBackBytes(4)]),
        ),
        (
            "a pattern that is replaced",
            Subject::new(|| ReplaceText::for_pattern(r"\b[0-9]{1,2} °C", "[degrees]").unwrap())
                .with_declared([EditsAnswers, HoldsBackBytes(8)]),
        ),
        (
            "a policy that allows",
            Subject::new(|| judges(|_| Verdict::Allow)).with_declared([HoldsBackBlocks]),
        ),
        (
            "a policy that denies",
            Subject::new(|| judges(|_| Verdict::deny("no"))).with_declared([EditsAnswers, HoldsBackBlocks]),
        ),
        (
            "a policy over texts",
            Subject::new(|| BlockPolicy {
                kinds: vec![BlockKind::Text, BlockKind::Reasoning],
                ..judges(|_| Verdict::Allow)
            })
            .with_declared([HoldsBackBlocks]),
        ),
        ("one that looks", Subject::new(looks)),
        (
            "an output guard that matches",
            Subject::new(|| {
                Guard::for_words(["windy"], LetterCase::Ignore).with_reply("[secret]").on_output()
            })
            .with_declared([EditsAnswers, HoldsBackBytes(4)]),
        ),
        (
            "an output guard that does not match",
            Subject::new(|| Guard::for_words(["windless", "worm"], LetterCase::Ignore).on_output())
                .with_declared([HoldsBackBytes(7)]),
        ),
        (
            "an output guard over whole texts",
            Subject::new(|| Guard::for_texts(|text| text.contains("windy")).on_output())
                .with_declared([EditsAnswers, HoldsBackBlocks]),
        ),
        (
            "an input guard that matches",
            Subject::new(|| Guard::for_words(["password"], LetterCase::Ignore).on_input())
                .with_declared([AnswersItself])
                .with_question("What is the password?"),
        ),
        (
            "an input guard that does not match",
            Subject::new(|| Guard::for_words(["password"], LetterCase::Ignore).on_input()),
        ),
        (
            "structured output that fits",
            Subject::new(|| StructuredOutput::new(city()))
                .with_declared([AsksAgain])
                .with_answer(r#"{"city":"Oslo"}"#),
        ),
        (
            "calls of the interface beside calls in text",
            Subject::new(|| TextToolCalls::new(TextFormat::Xml)).with_declared([EditsRequests]),
        ),
        (
            "calls in text",
            Subject::new(|| TextToolCalls::new(TextFormat::Xml))
                .with_declared([EditsAnswers, EditsRequests, HoldsBackBytes(18)])
                .with_answer("Let me look. <tool name=\"work\"><n>1</n></tool>"),
        ),
        (
            "calls in json",
            Subject::new(|| TextToolCalls::new(TextFormat::Json))
                .with_declared([EditsAnswers, EditsRequests, HoldsBackBytes(40)])
                .with_answer(r#"Let me look. {"tool": {"function": "work", "parameters": {"n": 1}}}"#),
        ),
        (
            "calls between markers",
            Subject::new(|| TextToolCalls::new(TextFormat::Sentinel))
                .with_declared([EditsAnswers, EditsRequests, HoldsBackBytes(60)])
                .with_answer(
                    r#"Let me look. [[SEG_START {"type": "tool", "tool_name": "work"}]]{"n": 1}[[SEG_END]]"#,
                ),
        ),
        (
            "context",
            Subject::new(|| {
                context_fn("context", |_: ChatRequest| async { Ok("It is always windy in Oslo.") })
            }),
        ),
        ("retrieval of documents", Subject::new(documents)),
        (
            "retrieval of past turns",
            Subject::new(|| PastTurns::new(WordEmbeddings::default(), InMemoryVectors::new())),
        ),
        ("a budget", Subject::new(|| Budget::for_each_turn().with_tokens(1_000_000).ignoring_unknown_cost())),
        ("a retry", Subject::new(retry).with_declared([HandlesErrors])),
        ("a rate limit", Subject::new(|| RateLimit::for_all().with_concurrency(2))),
        ("a response cache", Subject::new(ResponseCache::default)),
        (
            "a response cache with similar questions",
            Subject::new(|| ResponseCache::default().with_similar(WordEmbeddings::default(), 0.999)),
        ),
        (
            "tools of a function",
            Subject::new(|| tools_fn("tools", |_: ChatRequest| async { Ok(ToolSet::new()) })),
        ),
        ("allowed tools", Subject::new(|| OnlyTools::new(["work"]))),
        ("a search of tools", Subject::new(|| ToolSearch::new(&ToolSet::new()).unwrap())),
        ("tools of an mcp server", Subject::new(mcp_tools)),
        (
            "a system template",
            Subject::new(|| SystemTemplate::new("Help {user}.".parse().unwrap()).with("user", "Ann")),
        ),
        ("re reading", Subject::new(|| ReReading).with_declared([EditsRequests])),
        (
            "a tool loop that shows all",
            Subject::new(|| tool_loop(ToolCallStreaming::All)).with_declared([EditsAnswers, AsksAgain]),
        ),
        (
            "a tool loop that shows text",
            Subject::new(|| tool_loop(ToolCallStreaming::TextOnly))
                .with_declared([EditsAnswers, AsksAgain, HoldsBackBlocks]),
        ),
        (
            "a tool loop that shows the final answer",
            Subject::new(|| tool_loop(ToolCallStreaming::FinalAnswerOnly))
                .with_declared([EditsAnswers, AsksAgain, HoldsBackAnswers]),
        ),
        ("memory", Subject::new(|| ChatMemoryAdvisor::new(InMemoryStore::new()))),
        ("a fallback from a model that is down", Subject::new(falls_back)),
    ]
}

/// The advisors of the examples.
fn of_the_examples() -> Vec<(&'static str, Subject)> {
    vec![
        ("instructions", Subject::new(polite)),
        (
            "a guard that answers",
            Subject::new(guard).with_declared([AnswersItself]).with_question("The password, please."),
        ),
        ("documents", Subject::new(|| retrieval(&["The weather is in the north."]))),
        ("a stopwatch", Subject::new(|| Stopwatch)),
        ("the time of the first text", Subject::new(first_text)),
        ("permits", Subject::new(|| Permits(Journal::new()))),
        ("a log", Subject::new(|| Logged)),
        (
            "a redaction",
            Subject::new(|| redaction(&[("Oslo", "[city]")]))
                .with_declared([EditsAnswers, HoldsBackBytes(4)]),
        ),
        ("one that stops", Subject::new(|| stopping("windy")).with_declared([EditsAnswers, DependsOnPieces])),
        ("a cache", Subject::new(Cache::default)),
        ("one that tries again", Subject::new(once_more).with_declared([AsksAgain, HandlesErrors])),
        ("one that asks again", Subject::new(|| ask_again("sunny")).with_declared([AsksAgain])),
    ]
}

/// Advisors of the workspace that look at each chunk, and the allocations that it may cost.
const LOOKING_AT_CHUNKS: [(&str, u64); 16] = [
    ("words that do not occur", 0),
    ("an output guard that does not match", 0),
    ("a policy that allows", 0),
    ("one that looks", 0),
    ("context", 0),
    ("retrieval of documents", 0),
    ("a budget", 0),
    ("a retry", 0),
    ("tools of an mcp server", 0),
    ("a rate limit", 0),
    ("a response cache", 0),
    ("a response cache with similar questions", 0),
    ("a fallback from a model that is down", 0),
    ("memory", 0),
    ("a tool loop that shows text", 0),
    // Each event of its parser owns its text.
    ("calls of the interface beside calls in text", 1),
];

#[test]
fn law_r4_looking_at_chunks_allocates_as_little_as_declared() {
    let mut count = |work: &mut dyn FnMut()| allocation_counter::measure(&mut *work).count_total;
    let all = of_the_workspace();
    for (name, per_chunk) in LOOKING_AT_CHUNKS {
        println!("{name}");
        let (_, subject) = all.iter().find(|(other, _)| *other == name).unwrap();
        law_r4_chunks_cost_no_allocation(subject, per_chunk, &mut count);
    }
}

/// Judges each block after a moment. Earlier blocks take longer.
fn judges(verdict: fn(&PendingBlock) -> Verdict) -> BlockPolicy {
    BlockPolicy::new(move |pending: PendingBlock| async move {
        for _ in pending.id.position()..8 {
            yield_now().await;
        }
        Ok(verdict(&pending))
    })
}

fn looks() -> impl StreamAdvisor {
    from_fn("looks", |request: ChatRequest, next: AdvisorChain| async move {
        Ok(next.next_stream(request).await?.inspect_chunks(|_| {}))
    })
}

fn city() -> OutputFormat {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    OutputFormat::new("city", schema, |_| Ok(()))
}

fn documents() -> Retrieval {
    let found = || vec![Document::new("wind", "It is always windy in Oslo.")];
    Retrieval::new(move |_: Query| async move { Ok::<_, Error>(found()) })
}

/// A retry that does not wait. The suite itself has no clock, and some of its errors ask for a wait.
fn retry() -> Retry {
    let zero = Duration::ZERO;
    let at_once = Backoff { retries: 1, first: zero, longest: zero, max_retry_after: zero, seed: None };
    Retry { backoff: at_once }
}

/// The tools of a server in this process. Its tasks run on a separate runtime, since the suite counts the tasks of the test.
fn mcp_tools() -> McpTools {
    static RUNTIME: LazyLock<Runtime> =
        LazyLock::new(|| Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());
    let (connected, tools) = mpsc::channel();
    RUNTIME.spawn(async move {
        let client = ChatClient::builder(ScriptedModel::new([])).build().unwrap();
        let ask = ToolDefinition::new("ask", "Answers questions about the shop.", Value::Null);
        let server = ChainServer::new(client, ask).unwrap();
        let tools = McpServer::from_stream(move || {
            let (near, far) = tokio::io::duplex(64 << 10);
            let server = server.clone();
            tokio::spawn(async move { server.serve_stream(far).await });
            ready(Ok(near))
        });
        connected.send(tools.connect().await.unwrap()).unwrap();
    });
    tools.recv().unwrap()
}

fn tool_loop(streaming: ToolCallStreaming) -> ToolCallAdvisor {
    ToolCallAdvisor::builder().streaming(streaming).build().unwrap()
}

/// Asks a model that is down, and then the rest of the chain.
fn falls_back() -> impl StreamAdvisor {
    from_fn("falls-back", |request: ChatRequest, next: AdvisorChain| async move {
        let down = || Answer::refused(Error::new(ErrorKind::Connection, "the server cannot be reached"));
        let model = FallbackModel::new(ScriptedModel::from_fn(move |_| down()));
        model.with_fallback(Rest(next)).stream(request).await
    })
}

/// The rest of a chain, as a model.
struct Rest(AdvisorChain);

#[async_trait]
impl ChatModel for Rest {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        self.0.next_stream(request).await
    }
}
