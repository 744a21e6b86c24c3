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

/// Returns the model of a server of Messages.
#[allow(dead_code, reason = "each test file takes what it needs")]
pub(crate) fn ask_anthropic(url: &str) -> Arc<dyn ChatModel> {
    Arc::new(model_of(url, AdapterKind::Anthropic, "claude-sonnet-4-5"))
}

/// Returns the model of a server of Gemini.
#[allow(dead_code, reason = "each test file takes what it needs")]
pub(crate) fn ask_gemini(url: &str) -> Arc<dyn ChatModel> {
    Arc::new(model_of(url, AdapterKind::Gemini, "gemini-3-pro"))
}

pub(crate) fn model(url: &str) -> GenaiModel {
    model_of(url, AdapterKind::OpenAI, "example-model")
}

#[allow(clippy::expect_used, reason = "a failing helper is a failing test")]
pub(crate) fn model_of(url: &str, kind: AdapterKind, name: &str) -> GenaiModel {
    let target = ServiceTarget {
        endpoint: Endpoint::from_owned(format!("{url}/v1/")),
        auth: AuthData::from_single(KEY),
        model: ModelIden::new(kind, name),
    };
    GenaiModel::new(Client::new().expect("a client"), target)
}
