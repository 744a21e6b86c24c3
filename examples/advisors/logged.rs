//! An advisor as a type, which does something before a request and after its answer.

use std::sync::Arc;

use advisor_chain::{
    AdvisorChain, AdvisorInfo, ChatRequest, ChunkStream, Result, StreamAdvisor, async_trait,
};

/// Prints the number of messages of each request, and the answer.
#[derive(Debug)]
pub struct Logged;

impl AdvisorInfo for Logged {
    fn name(&self) -> &str {
        "logged"
    }
}

#[async_trait]
impl StreamAdvisor for Logged {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        println!("asked with {} messages", request.messages.len()); // before
        let answer = next.next_stream(request).await?;
        Ok(answer.on_completed(|response| async move {
            println!("answered: {}", response.text()); // after
            Ok(response)
        }))
    }
}
