//! The model under test.

use std::sync::Arc;

use adapter_tests::KEY;
use advisor_core::ChatModel;
use model_rig::RigModel;
use rig_core::providers::anthropic::AnthropicConfig;
use rig_core::providers::gemini::GeminiConfig;
use rig_core::providers::openai::OpenAIConfig;

/// Returns the model of a server of Chat Completions. It never repeats a request.
pub(crate) fn ask(url: &str) -> Arc<dyn ChatModel> {
    let client = OpenAIConfig::new(KEY).with_base_url(format!("{url}/v1")).client();
    Arc::new(RigModel::new(client.chat("example-model")).with_secrets([KEY.to_owned()]))
}

/// Returns the model of a server of Messages.
#[allow(dead_code, reason = "each test file takes what it needs")]
pub(crate) fn ask_anthropic(url: &str) -> Arc<dyn ChatModel> {
    let client = AnthropicConfig::new(KEY).with_base_url(url).client();
    Arc::new(RigModel::new(client.completion("claude-sonnet-4-5")).with_secrets([KEY.to_owned()]))
}

/// Returns the model of a server of Gemini.
#[allow(dead_code, reason = "each test file takes what it needs")]
pub(crate) fn ask_gemini(url: &str) -> Arc<dyn ChatModel> {
    let client = GeminiConfig::new(KEY).with_base_url(url).client();
    Arc::new(RigModel::new(client.completion("gemini-3-pro")).with_secrets([KEY.to_owned()]))
}
