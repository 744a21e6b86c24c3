//! The model under test.

use std::sync::Arc;

use adapter_tests::KEY;
use advisor_core::ChatModel;
use model_rig::RigModel;
use rig_core::providers::openai::OpenAIConfig;

/// Returns the model of a server of Chat Completions. It never repeats a request.
pub(crate) fn ask(url: &str) -> Arc<dyn ChatModel> {
    let client = OpenAIConfig::new(KEY).with_base_url(format!("{url}/v1")).client();
    Arc::new(RigModel::new(client.chat("example-model")).with_secrets([KEY.to_owned()]))
}
