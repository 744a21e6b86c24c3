//! The model under test.

use std::sync::Arc;

use advisor_core::ChatModel;
use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::middleware::ReqwestService;
use model_async_openai::AsyncOpenAiModel;

/// Returns the model of a server. Without the client's own middleware, it does not repeat a request.
pub(crate) fn ask(url: &str) -> Arc<dyn ChatModel> {
    let config = OpenAIConfig::new().with_api_base(format!("{url}/v1")).with_api_key(adapter_tests::KEY);
    let once = ReqwestService::new(reqwest::Client::new());
    Arc::new(AsyncOpenAiModel::new(Client::with_config(config).with_http_service(once), "example-model"))
}
