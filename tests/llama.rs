//! A whole turn against a real llama.cpp server, if there is one.
//!
//! `ADVISOR_LLAMA_URL` names it, such as `http://127.0.0.1:8080`; with `ADVISOR_REQUIRE_LLAMA=1` its absence fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it left out"
)]

use advisor_chain::memory::validate_transcript;
use advisor_chain::messages::{ChunkFold, ToolEventKind};
use advisor_chain::openai::{OpenAiResponsesModel, Profile};
use advisor_chain::tools::ToolCallStreaming;
use advisor_chain::{
    ChatClient, ChatMemoryAdvisor, ChatModel, ChatOptions, Chunk, ConversationKey, FinishReason, FnTool,
    InMemoryStore, OpenAiModel, Phase, PromptExt, ToolCallAdvisor, ToolDefinition,
};
use futures::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::Write as _;

fn server() -> Option<String> {
    let url = std::env::var("ADVISOR_LLAMA_URL").ok().filter(|url| !url.is_empty());
    let required = std::env::var("ADVISOR_REQUIRE_LLAMA").is_ok_and(|required| required == "1");
    if url.is_none() {
        assert!(!required, "ADVISOR_REQUIRE_LLAMA=1, but ADVISOR_LLAMA_URL names no server");
        // Not `eprintln!`, which the test harness keeps to itself when the test passes.
        let _ = writeln!(std::io::stderr(), "left out: no llama.cpp server; name one in ADVISOR_LLAMA_URL");
    }
    url
}

fn client(model: impl ChatModel, memory: &ChatMemoryAdvisor, memory_in: Phase) -> ChatClient {
    let weather = ToolDefinition::new(
        "get_weather",
        "Tells the weather in a city.",
        json!({
            "type": "object",
            "properties": {
                "city": {"type": "string", "enum": ["Paris", "Tokyo", "São Paulo"]},
                "unit": {"type": "string", "enum": ["c", "f"]},
            },
            "required": ["city", "unit"],
        }),
    );
    let mut options = ChatOptions::new().with_max_tokens(600).with_temperature(0.7);
    options.seed = Some(1);
    ChatClient::builder(model)
        .options(options)
        .advisor(ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build().unwrap())
        .advisor_in(memory_in, memory.clone())
        .tool(FnTool::new(weather, |arguments: Value| async move {
            Ok(format!("21 °C in {}", arguments["city"]))
        }))
        .build()
        .unwrap()
}

#[tokio::test]
async fn llama_cpp_answers_full_chain_with_tool_round() {
    let Some(url) = server() else { return };
    answers_full_chain(&OpenAiModel::new("tiny").with_base_url(format!("{url}/v1"))).await;
}

#[tokio::test]
async fn llama_cpp_answers_full_chain_over_responses_api() {
    let Some(url) = server() else { return };
    answers_full_chain(&OpenAiResponsesModel::new("tiny").with_base_url(format!("{url}/v1"))).await;
}

async fn answers_full_chain(model: &(impl ChatModel + Clone)) {
    for memory_in in [Phase::Round, Phase::Turn] {
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let client = client(model.clone(), &memory, memory_in);
        let mut turn = client.prompt().user("weather in Paris?").conversation("c").stream();
        let mut fold = ChunkFold::new();
        let mut finished = 0;
        let mut rounds = 0;
        let mut response = None;
        while let Some(chunk) = turn.next().await {
            let chunk = chunk.unwrap();
            fold.push(&chunk);
            match chunk {
                Chunk::Tool(event) => {
                    if let ToolEventKind::Finished(result) = &event.kind {
                        assert!(!result.is_error, "{result:?}");
                        finished += 1;
                    }
                }
                Chunk::RoundCompleted(_) => rounds += 1,
                Chunk::Completed(completed) => response = Some(completed),
                _ => {}
            }
        }
        let response = response.unwrap();
        assert_eq!(response.finish().reason, FinishReason::Stop);
        assert!(response.text().contains("東京"), "{}", response.text());
        assert_eq!(fold.text(response.round()), response.text());
        assert!(finished >= 1 && rounds >= 1, "{finished} tools in {rounds} rounds");
        assert!(response.usage().and_then(|usage| usage.output_tokens).unwrap_or_default() > 0);
        let transcript = memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(validate_transcript(&transcript), []);
        assert_eq!(transcript.len(), 2 + rounds + finished, "user, rounds, results, answer");
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
enum Place {
    Paris,
    Tokyo,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Trip {
    from: Place,
    to: Place,
}

#[tokio::test]
async fn llama_cpp_constrains_entity_to_its_schema() {
    let Some(url) = server() else { return };
    let model =
        OpenAiModel::new("tiny").with_base_url(format!("{url}/v1")).with_profile(Profile::llama_cpp());
    let mut options = ChatOptions::new().with_max_tokens(200).with_temperature(0.7);
    options.seed = Some(1);
    let client = ChatClient::builder(model).options(options).build().unwrap();
    // A model that knows no JSON: it fits, and at once, because the server lets nothing else through.
    let trip: Trip = client.prompt().user("weather in Paris?").entity().with_attempts(1).await.unwrap();
    assert!(matches!((trip.from, trip.to), (Place::Paris | Place::Tokyo, Place::Paris | Place::Tokyo)));
}
