//! The mocks of aimock, one for each API, with the answers in `fixtures.json`.

mod conversation;
mod faults;

use advisor_chain::openai;
use advisor_chain::openai::backoff::Backoff;
use advisor_chain::openai::transport::{ReqwestTransport, Transport};
use advisor_tests::prelude::*;

/// The APIs, all behind one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Api {
    ChatCompletions,
    Responses,
    Messages,
    Gemini,
    Ollama,
    /// Chat Completions at Azure.
    Azure,
    /// Chat Completions at OpenRouter.
    OpenRouter,
    /// Gemini at Vertex AI.
    VertexAi,
}

/// How a model sends its requests.
#[derive(Debug, Clone, Copy)]
struct Sending<'a> {
    streaming: bool,
    retries: Backoff,
    /// The fault that each request meets.
    fault: Option<&'a str>,
}

impl Default for Sending<'_> {
    fn default() -> Self {
        Self { streaming: true, retries: Backoff::none(), fault: None }
    }
}

impl Api {
    const ALL: [Self; 8] = [
        Self::ChatCompletions,
        Self::Responses,
        Self::Messages,
        Self::Gemini,
        Self::Ollama,
        Self::Azure,
        Self::OpenRouter,
        Self::VertexAi,
    ];

    /// Returns the options with which a model shows its reasoning.
    fn options(self) -> ChatOptions {
        match self {
            // The mock then refuses a round of calls that comes back without its signed thinking.
            Self::Messages => ChatOptions::default()
                .with_extra("thinking", json!({"type": "enabled", "budget_tokens": 1024})),
            _ => ChatOptions::default(),
        }
    }
}

/// The requests of one test at the server.
struct Aimock {
    url: String,
    /// The server counts and lists requests by this header.
    test_id: String,
}

impl Aimock {
    /// Returns the server, if there is one, with an empty list of requests.
    fn new() -> Option<Self> {
        let url = crate::peers::address("AIMOCK")?;
        Some(Self { url, test_id: TurnId::random().to_string() })
    }

    /// Returns a model of this API.
    fn model(&self, api: Api, sending: Sending<'_>) -> Arc<dyn ChatModel> {
        let url = &self.url;
        macro_rules! model {
            ($model:expr) => {{
                let model = $model.with_api_key("key").with_header("x-test-id", &*self.test_id);
                let model = model.with_streaming(sending.streaming).with_retries(sending.retries);
                Arc::new(match sending.fault {
                    Some(fault) => model.with_header(&format!("x-aimock-chaos-{fault}"), "1"),
                    None => model,
                })
            }};
        }
        // `fixtures.json` breaks off the answers of these models.
        match api {
            Api::ChatCompletions => {
                model!(OpenAiModel::new("gpt-5-mini").with_base_url(format!("{url}/v1")))
            }
            Api::Responses => {
                model!(OpenAiResponsesModel::new("gpt-5").with_base_url(format!("{url}/v1")))
            }
            Api::Messages => model!(AnthropicModel::new("claude-sonnet-4-5").with_base_url(url)),
            Api::Gemini => model!(GeminiModel::new("gemini-2.5-flash").with_base_url(url)),
            Api::Ollama => model!(OllamaModel::new("qwen3").with_base_url(url)),
            Api::Azure => model!(
                OpenAiModel::new("gpt-5-mini")
                    .with_base_url(url)
                    .with_profile(openai::Profile::azure_deployment("2024-10-21"))
            ),
            Api::OpenRouter => model!(
                OpenAiModel::new("gpt-5-mini")
                    .with_base_url(format!("{url}/api/v1"))
                    .with_profile(openai::Profile::for_base_url("https://openrouter.ai/api/v1"))
            ),
            Api::VertexAi => model!(
                GeminiModel::new("gemini-2.5-flash")
                    .with_base_url(format!("{url}/v1/projects/p/locations/global/publishers/google"))
                    .at_vertex_ai()
            ),
        }
    }

    /// Returns the requests as the server understood them: whatever the API, in the form of Chat Completions.
    async fn requests(&self) -> Vec<Value> {
        let url = format!("{}/__aimock/journal?testId={}", self.url, self.test_id);
        let request = http::Request::get(url).body(Default::default()).unwrap();
        let response = ReqwestTransport::new(None).unwrap().send(request).await.unwrap();
        let body: Vec<_> = response.into_body().try_collect().await.unwrap();
        serde_json::from_slice(&body.concat()).unwrap()
    }
}
