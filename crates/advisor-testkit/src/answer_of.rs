//! `answer_of`: asks a model and reads its answer to the end.

use advisor_core::{ChatModel, ChatRequest, ChatResponse, Chunk, Result};
use futures::StreamExt;

/// Asks a model, and reads its answer to the end.
///
/// # Errors
/// That of the request or of its answer.
///
/// # Panics
/// If the stream ends with neither an error nor `Completed`, which law S1 forbids.
#[allow(clippy::expect_used, reason = "this is a check for tests: a broken law has to be seen")]
pub async fn answer_of(model: &impl ChatModel, request: ChatRequest) -> Result<ChatResponse> {
    let mut stream = model.stream(request).await?;
    let mut last = None;
    while let Some(chunk) = stream.next().await {
        last = Some(chunk?);
    }
    Ok(last.as_ref().and_then(Chunk::completed).expect("a stream ends with `Completed`").clone())
}
