//! The model under test.

use std::sync::Arc;

use adapter_tests::KEY;
use advisor_core::ChatModel;
use genai::adapter::AdapterKind;
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};
use model_genai::GenaiModel;

/// Returns the model of a server of Chat Completions. The client never repeats a request.
pub(crate) fn ask(url: &str) -> Arc<dyn ChatModel> {
    Arc::new(model(url))
}

#[allow(clippy::expect_used, reason = "a failing helper is a failing test")]
pub(crate) fn model(url: &str) -> GenaiModel {
    let target = ServiceTarget {
        endpoint: Endpoint::from_owned(format!("{url}/v1/")),
        auth: AuthData::from_single(KEY),
        model: ModelIden::new(AdapterKind::OpenAI, "example-model"),
    };
    GenaiModel::new(Client::new().expect("a client"), target)
}
