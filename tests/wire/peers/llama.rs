//! A small model of llama.cpp, over each of its endpoints.
//!
//! The model calls tools, a random number of them, until a result is in its prompt. Then it answers.

use advisor_chain::openai::Profile;
use advisor_tests::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::peers::chain::Chain;

/// The seeds to try for a round with several calls, which one seed in four gives.
const SEEDS: std::ops::Range<i64> = 0..40;

/// Returns a model of each endpoint, which asks for streamed or for whole answers.
fn endpoints(url: &str, streaming: bool) -> [(&'static str, Arc<dyn ChatModel>); 3] {
    let openai = format!("{url}/v1");
    let chat = OpenAiModel::new("tiny").with_base_url(&openai).with_streaming(streaming);
    let responses = OpenAiResponsesModel::new("tiny").with_base_url(&openai).with_streaming(streaming);
    let messages = AnthropicModel::new("tiny").with_base_url(url).with_streaming(streaming);
    [
        ("Chat Completions", Arc::new(chat)),
        ("Responses", Arc::new(responses)),
        ("Messages", Arc::new(messages)),
    ]
}

fn options(seed: i64) -> ChatOptions {
    // Only one of the three APIs has a seed; the server reads it in all of them.
    ChatOptions { temperature: Some(0.7), max_tokens: Some(600), ..ChatOptions::default() }
        .with_extra("seed", seed)
}

#[tokio::test]
async fn llama_cpp_holds_conversation_over_each_endpoint() {
    let Some(url) = crate::peers::address("LLAMA") else { return };
    for streaming in [true, false] {
        for (endpoint, model) in endpoints(&url, streaming) {
            for memory_in in PLACES {
                let case = format!("{endpoint}, streaming {streaming}, memory in {memory_in:?}");
                holds_conversation(&case, &model, memory_in).await;
            }
        }
    }
}

async fn holds_conversation(case: &str, model: &Arc<dyn ChatModel>, memory_in: Phase) {
    for seed in SEEDS {
        let chain = Chain::new(Arc::clone(model), options(seed), memory_in);
        let first = chain.turn("weather in Paris?").await;
        assert_eq!(first.response().finish.reason, FinishReason::Stop, "{case}");
        assert!(first.response().text().contains("東京"), "{case}: {}", first.response().text());
        assert_eq!(first.rounds.len(), 1, "{case}");
        let calls = first.results.len();
        assert_eq!((first.opened.len(), chain.most_running()), (calls, calls), "{case}: all run at once");
        assert!(first.rounds[0].text().starts_with("Let me check"), "{case}: {}", first.rounds[0].text());
        let asked = first.rounds[0].usage.and_then(|usage| usage.input_tokens).unwrap_or_default();
        if calls < 2 {
            continue;
        }

        // The model calls no tool again, because it reads the results of the first turn.
        let second = chain.turn("weather in Paris?").await;
        assert!(second.response().text().contains("東京"), "{case}: {}", second.response().text());
        assert_eq!((second.rounds.len(), second.opened.len()), (0, 0), "{case}");
        let tokens = second.response().usage.as_ref().unwrap();
        assert!(tokens.input_tokens.unwrap_or_default() > asked, "{case}: {tokens:?}, before {asked}");
        assert!(tokens.output_tokens.unwrap_or_default() > 0, "{case}: {tokens:?}");

        let stored = chain.stored().await;
        let mut roles = vec![Role::User, Role::Assistant];
        roles.extend(vec![Role::Tool; calls]);
        roles.extend([Role::Assistant, Role::User, Role::Assistant]);
        assert_eq!(stored.iter().map(|message| message.role()).collect::<Vec<_>>(), roles, "{case}");
        return;
    }
    panic!("{case}: no seed gives several calls");
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
    let Some(url) = crate::peers::address("LLAMA") else { return };
    let model =
        OpenAiModel::new("tiny").with_base_url(format!("{url}/v1")).with_profile(Profile::llama_cpp());
    let client = ChatClient::builder(model)
        .options(ChatOptions { max_tokens: Some(200), ..options(1) })
        .build()
        .unwrap();
    // A model that knows no JSON: it fits, and at once, because the server lets nothing else through.
    let trip: Trip = client.prompt().user("weather in Paris?").entity().with_attempts(1).await.unwrap();
    assert!(matches!((trip.from, trip.to), (Place::Paris | Place::Tokyo, Place::Paris | Place::Tokyo)));
}
