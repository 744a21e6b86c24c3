//! Runs the conformance suite of advisors on every advisor of the workspace, and on those of the examples.

use std::future::ready;
use std::sync::{LazyLock, mpsc};
use std::time::Duration;

use advisor_chain::advisors::{
    Budget, InMemoryQuestions, OnUnknownCost, OnlyTools, PrefixWatch, RateLimit, ReReading, ResponseCache,
    Retry, SystemTemplate, ToolSearch,
};
use advisor_chain::chain::{Backoff, FallbackModel, context_fn};
use advisor_chain::mcp::{ChainServer, McpServer, McpTools};
use advisor_chain::messages::{BlockKind, BlockObserver};
use advisor_chain::retrieval::{Document, InMemoryVectors, PastTurns, Query, Retrieval};
use advisor_chain::stream_policy::{
    BlockPolicy, Guard, LetterCase, ObserveBlocks, PendingBlock, ReplaceText, Verdict,
};
use advisor_chain::structured::{OutputFormat, StructuredOutput};
use advisor_chain::text_tool_calls::{PromptFormat, TextToolCalls, ThinkingSplitter};
use advisor_chain::tools::{ToolCallStreaming, ToolSet, tools_fn};
use advisor_chain::{
    AdvisorChain, ChatClient, ChatMemoryAdvisor, ChatModel, ChatRequest, ChunkStream, Error, ErrorKind,
    InMemoryStore, Result, StreamAdvisor, ToolCallAdvisor, ToolDefinition, async_trait, from_fn,
};
use advisor_examples::advisors::{
    Cache, Logged, Permits, Stopwatch, ask_again, first_text, guard, once_more, polite, redaction, retrieval,
    stopping,
};
use advisor_testkit::{
    Journal, JournalAdvisor, ScriptedModel, WordEmbeddings, advisor_allocations, advisor_conformance,
};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

mod words_that_are_replaced {
    super::advisor_conformance!(
        super::ReplaceText::new([("Oslo", "[city]"), ("windy", "calm")]),
        declares EditsAnswers HoldsBackBytes(4)
    );
}

mod words_that_do_not_occur {
    super::advisor_conformance!(super::ReplaceText::new([("Bergen", "[city]")]), declares HoldsBackBytes(5));
}

mod a_pattern_that_is_replaced {
    super::advisor_conformance!(
        super::ReplaceText::for_pattern(r"\b[0-9]{1,2} °C", "[degrees]").unwrap(),
        declares EditsAnswers HoldsBackBytes(8)
    );
}

mod a_policy_that_allows {
    super::advisor_conformance!(super::judges(|_| super::Verdict::Allow), declares HoldsBackBlocks);
}

mod a_policy_that_denies {
    super::advisor_conformance!(
        super::judges(|_| super::Verdict::deny("no")),
        declares EditsAnswers HoldsBackBlocks
    );
}

mod a_policy_over_texts {
    super::advisor_conformance!(
        super::judges(|_| super::Verdict::Allow).with_kinds([super::BlockKind::Text, super::BlockKind::Reasoning]),
        declares HoldsBackBlocks
    );
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

mod an_observer_of_blocks {
    super::advisor_conformance!(super::ObserveBlocks::new(|_| super::Looks));
}

struct Looks;

impl BlockObserver for Looks {}

mod an_output_guard_that_matches {
    super::advisor_conformance!(
        super::Guard::for_words(["windy"], super::LetterCase::Ignore).with_reply("[secret]").on_output(),
        declares EditsAnswers HoldsBackBytes(4)
    );
}

mod an_output_guard_that_does_not_match {
    super::advisor_conformance!(
        super::Guard::for_words(["windless"], super::LetterCase::Ignore).on_output(),
        declares HoldsBackBytes(7)
    );
}

mod an_output_guard_over_whole_texts {
    super::advisor_conformance!(
        super::Guard::for_texts(|text| text.contains("windy")).on_output(),
        declares EditsAnswers HoldsBackBlocks
    );
}

mod an_input_guard_that_matches {
    super::advisor_conformance!(
        super::Guard::for_words(["password"], super::LetterCase::Ignore).on_input(),
        declares AnswersItself,
        question "What is the password?"
    );
}

mod an_input_guard_that_does_not_match {
    super::advisor_conformance!(super::Guard::for_words(["password"], super::LetterCase::Ignore).on_input());
}

mod structured_output_that_fits {
    super::advisor_conformance!(
        super::StructuredOutput::new(super::city()),
        declares AsksAgain,
        answer r#"{"city":"Oslo"}"#
    );
}

fn city() -> OutputFormat {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    OutputFormat::new("city", schema, |_| Ok(()))
}

mod calls_of_the_interface_beside_calls_in_text {
    super::advisor_conformance!(super::TextToolCalls::new(super::PromptFormat::Xml), declares EditsRequests);
}

mod calls_in_text {
    super::advisor_conformance!(
        super::TextToolCalls::new(super::PromptFormat::Xml),
        declares EditsAnswers EditsRequests HoldsBackBytes(18),
        answer "Let me look. <tool name=\"work\"><n>1</n></tool>"
    );
}

mod calls_in_json {
    super::advisor_conformance!(
        super::TextToolCalls::new(super::PromptFormat::Json),
        declares EditsAnswers EditsRequests HoldsBackBytes(40),
        answer r#"Let me look. {"tool": {"function": "work", "parameters": {"n": 1}}}"#
    );
}

mod calls_between_markers {
    super::advisor_conformance!(
        super::TextToolCalls::new(super::PromptFormat::Sentinel),
        declares EditsAnswers EditsRequests HoldsBackBytes(60),
        answer r#"Let me look. [[SEG_START {"type": "tool", "tool_name": "work"}]]{"n": 1}[[SEG_END]]"#
    );
}

mod reasoning_in_text {
    super::advisor_conformance!(
        super::TextToolCalls::new(super::PromptFormat::Xml).with_thinking(super::ThinkingSplitter::new()),
        declares EditsAnswers EditsRequests HoldsBackBytes(7),
        answer "<think>Oslo is windy.</think>It is windy in Oslo. "
    );
}

mod context {
    super::advisor_conformance!(super::context_fn("context", |_: super::ChatRequest| async {
        Ok("It is always windy in Oslo.")
    }));
}

mod retrieval_of_documents {
    super::advisor_conformance!(super::documents());
}

fn documents() -> Retrieval {
    let found = || vec![Document::new("wind", "It is always windy in Oslo.")];
    Retrieval::new(move |_: Query| async move { Ok::<_, Error>(found()) })
}

mod retrieval_of_past_turns {
    super::advisor_conformance!(super::PastTurns::new(
        super::WordEmbeddings::default(),
        super::InMemoryVectors::new()
    ));
}

mod a_budget {
    super::advisor_conformance!(super::Budget::for_each_turn().with_tokens(1_000_000));
}

mod a_retry {
    super::advisor_conformance!(super::retry(), declares HandlesErrors);
}

/// A retry that does not wait. The suite itself has no clock, and some of its errors ask for a wait.
fn retry() -> Retry {
    let at_once = Backoff::default().with_retries(1).with_waits(Duration::ZERO, Duration::ZERO);
    Retry::new().with_backoff(at_once.with_max_retry_after(Duration::ZERO))
}

mod a_rate_limit {
    super::advisor_conformance!(super::RateLimit::for_all().with_concurrency(2));
}

mod a_response_cache {
    super::advisor_conformance!(super::ResponseCache::new());
}

mod a_response_cache_with_similar_questions {
    super::advisor_conformance!(super::ResponseCache::new().with_similar(
        super::WordEmbeddings::default(),
        super::InMemoryQuestions::new(),
        0.999
    ));
}

mod a_prefix_watch {
    super::advisor_conformance!(super::PrefixWatch::new());
}

mod tools_of_a_function {
    super::advisor_conformance!(super::tools_fn("tools", |_: super::ChatRequest| async {
        Ok(super::ToolSet::new())
    }));
}

mod allowed_tools {
    super::advisor_conformance!(super::OnlyTools::new(["work"]));
}

mod a_search_of_tools {
    super::advisor_conformance!(super::ToolSearch::new(&super::ToolSet::new()).unwrap());
}

mod tools_of_an_mcp_server {
    super::advisor_conformance!(super::mcp_tools());
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

mod a_system_template {
    super::advisor_conformance!(
        super::SystemTemplate::new("Help {user}.".parse().unwrap()).with("user", "Ann")
    );
}

mod re_reading {
    super::advisor_conformance!(super::ReReading, declares EditsRequests);
}

mod a_tool_loop_that_shows_all {
    super::advisor_conformance!(
        super::tool_loop(super::ToolCallStreaming::All),
        declares EditsAnswers AsksAgain
    );
}

mod a_tool_loop_that_shows_text {
    super::advisor_conformance!(
        super::tool_loop(super::ToolCallStreaming::TextOnly),
        declares EditsAnswers AsksAgain HoldsBackBlocks
    );
}

mod a_tool_loop_that_shows_the_final_answer {
    super::advisor_conformance!(
        super::tool_loop(super::ToolCallStreaming::FinalAnswerOnly),
        declares EditsAnswers AsksAgain HoldsBackAnswers
    );
}

fn tool_loop(streaming: ToolCallStreaming) -> ToolCallAdvisor {
    ToolCallAdvisor::builder().streaming(streaming).build().unwrap()
}

mod memory {
    super::advisor_conformance!(super::ChatMemoryAdvisor::new(super::InMemoryStore::new()));
}

mod a_fallback_from_a_model_that_is_down {
    super::advisor_conformance!(super::falls_back());
}

/// Asks a model that is down, and then the rest of the chain.
fn falls_back() -> impl StreamAdvisor {
    from_fn("falls-back", |request: ChatRequest, next: AdvisorChain| async move {
        FallbackModel::new(Down).with_fallback(Rest(next)).stream(request).await
    })
}

struct Down;

#[async_trait]
impl ChatModel for Down {
    async fn stream(&self, _: ChatRequest) -> Result<ChunkStream> {
        Err(Error::new(ErrorKind::Connection, "the server cannot be reached"))
    }
}

/// The rest of a chain, as a model.
struct Rest(AdvisorChain);

#[async_trait]
impl ChatModel for Rest {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        self.0.next_stream(request).await
    }
}

mod an_advisor_in_a_journal {
    super::advisor_conformance!(super::JournalAdvisor::new(super::polite(), &super::Journal::new()));
}

/// The advisors of the examples.
mod examples {
    use super::*;

    mod instructions {
        super::advisor_conformance!(super::polite());
    }

    mod a_guard_that_answers {
        super::advisor_conformance!(super::guard(), declares AnswersItself, question "The password, please.");
    }

    mod documents {
        super::advisor_conformance!(super::retrieval(&["The weather is in the north."]));
    }

    mod a_stopwatch {
        super::advisor_conformance!(super::Stopwatch);
    }

    mod the_time_of_the_first_text {
        super::advisor_conformance!(super::first_text());
    }

    mod permits {
        super::advisor_conformance!(super::Permits(super::Journal::new()));
    }

    mod a_log {
        super::advisor_conformance!(super::Logged);
    }

    mod a_redaction {
        super::advisor_conformance!(
            super::redaction(&[("Oslo", "[city]")]),
            declares EditsAnswers HoldsBackBytes(4)
        );
    }

    mod one_that_stops {
        super::advisor_conformance!(super::stopping("windy"), declares EditsAnswers DependsOnPieces);
    }

    mod a_cache {
        super::advisor_conformance!(super::Cache::default());
    }

    mod one_that_tries_again {
        super::advisor_conformance!(super::once_more(), declares AsksAgain HandlesErrors);
    }

    mod one_that_asks_again {
        super::advisor_conformance!(super::ask_again("sunny"), declares AsksAgain);
    }
}

/// The allocations of advisors for each chunk of a text (law R4).
mod allocations {
    use super::*;

    mod of_words_that_do_not_occur {
        super::advisor_allocations!(super::ReplaceText::new([("worm", "[animal]"), ("order", "[order]")]));
    }

    mod of_an_output_guard {
        super::advisor_allocations!(
            super::Guard::for_words(["worm", "order"], super::LetterCase::Ignore).on_output()
        );
    }

    mod of_a_policy_over_calls {
        super::advisor_allocations!(super::judges(|_| super::Verdict::Allow));
    }

    mod of_an_observer {
        super::advisor_allocations!(super::ObserveBlocks::new(|_| super::Looks));
    }

    mod of_context {
        super::advisor_allocations!(super::context_fn("context", |_: super::ChatRequest| async {
            Ok("Windy.")
        }));
    }

    mod of_retrieval {
        super::advisor_allocations!(super::documents());
    }

    mod of_a_budget {
        // The model of this suite reports no tokens.
        super::advisor_allocations!(
            super::Budget::for_each_turn()
                .with_tokens(1_000_000)
                .with_on_unknown_cost(super::OnUnknownCost::Ignore)
        );
    }

    mod of_a_retry {
        super::advisor_allocations!(super::retry());
    }

    mod of_tools_of_an_mcp_server {
        super::advisor_allocations!(super::mcp_tools());
    }

    mod of_a_rate_limit {
        super::advisor_allocations!(super::RateLimit::for_all().with_concurrency(2));
    }

    mod of_a_response_cache {
        super::advisor_allocations!(super::ResponseCache::new());
    }

    mod of_a_response_cache_with_similar_questions {
        super::advisor_allocations!(super::ResponseCache::new().with_similar(
            super::WordEmbeddings::default(),
            super::InMemoryQuestions::new(),
            0.999
        ));
    }

    mod of_a_prefix_watch {
        super::advisor_allocations!(super::PrefixWatch::new());
    }

    mod of_a_fallback {
        super::advisor_allocations!(super::falls_back());
    }

    mod of_memory {
        super::advisor_allocations!(super::ChatMemoryAdvisor::new(super::InMemoryStore::new()));
    }

    mod of_a_tool_loop {
        super::advisor_allocations!(super::tool_loop(super::ToolCallStreaming::TextOnly));
    }

    mod of_calls_in_text {
        // Each event of its parser owns its text.
        super::advisor_allocations!(super::TextToolCalls::new(super::PromptFormat::Xml), at_most 1);
    }

    mod of_an_advisor_in_a_journal {
        super::advisor_allocations!(super::JournalAdvisor::new(super::polite(), &super::Journal::new()));
    }
}
