//! A custom advisor that changes chunks, and its tests with the testkit.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::chain::AdvisorRole;
use std::sync::Arc;

use advisor_chain::chain::HoldBack;
use advisor_chain::messages::ChunkFold;
use advisor_chain::{
    AdvisorChain, AdvisorInfo, ChatClient, ChatRequest, Chunk, ChunkStream, Message, Phase, Placement,
    Result, StreamAdvisor, async_trait,
};
use advisor_testkit::{Answer, ScriptedModel};
use futures::StreamExt;

/// Replaces a word in the answer, also where it is cut in two. It holds back only text that may begin the word.
struct Redact(&'static str);

impl AdvisorInfo for Redact {
    fn name(&self) -> &str {
        "redact"
    }

    /// It changes answers, so its place is between memory and the model: memory stores the shown text.
    fn placement(&self) -> Placement {
        Placement { phase: Phase::ModelCall, role: AdvisorRole::InsideMemory }
    }
}

#[async_trait]
impl StreamAdvisor for Redact {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let answer = next.next_stream(request).await?;
        Ok(answer.edit_text(HoldBack::Bytes(self.0.len()), move |text| text.replace_all(&[(self.0, "█")])))
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    // For every split of the text, the answer, the chunks and the response agree.
    let secret = "The key is swordfish, swordfish!";
    for cut in (1..secret.len()).filter(|cut| secret.is_char_boundary(*cut)) {
        let (one, two) = secret.split_at(cut);
        let model =
            ScriptedModel::new([Answer::new().text(one).text(two).finish(advisor_chain::FinishReason::Stop)]);
        let client = ChatClient::builder(model).advisor(Redact("swordfish")).build()?;
        let mut stream = client.chain().next_stream(ChatRequest::new(Message::user("?"))).await?;
        let mut fold = ChunkFold::default();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk?;
            fold.push(&chunk);
            if let Chunk::Completed(response) = chunk {
                assert_eq!(response.text(), "The key is █, █!");
                assert_eq!(fold.text(response.round()), response.text());
            }
        }
    }
    // A call before the text, as models write it, changes nothing.
    let answer = Answer::new().call("c1", "look", "{}").text("I hold the sw").text("ordfish");
    let model = ScriptedModel::new([answer.finish(advisor_chain::FinishReason::ToolCalls)]);
    let client = ChatClient::builder(model).advisor(Redact("swordfish")).build()?;
    let response = client.prompt().user("?").call().await?;
    assert_eq!(response.text(), "I hold the █");
    println!("redacted in every one of {} cuts", secret.len() - 1);
    Ok(())
}
