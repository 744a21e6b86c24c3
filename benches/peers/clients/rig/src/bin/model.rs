//! rig's model alone: no agent, no tools.

use futures::StreamExt;
use peer_measure::Peer;
use rig::completion::CompletionRequest;
use rig::providers::openai::OpenAIConfig;
use rig::streaming::{Item, StreamEvent};

#[derive(Clone)]
struct RigModel(OpenAIConfig);

impl Peer for RigModel {
    fn new(address: &str, _: bool) -> Self {
        Self(OpenAIConfig::new("none").with_base_url(address))
    }

    async fn turn(&self, mut on_text: impl AsyncFnMut(&str)) -> u64 {
        // The connections are shared by the whole process.
        let model = self.0.clone().client().chat("gpt-4o-mini");
        let mut stream = model.stream(CompletionRequest::new("What now?")).expect("a request");
        while let Some(item) = stream.next().await {
            if let Item::Event(StreamEvent::Text { text, .. }) = item.expect("the answer goes on")
                && !text.is_empty()
            {
                on_text(&text).await;
            }
        }
        1
    }
}

fn main() {
    peer_measure::main::<RigModel>();
}
