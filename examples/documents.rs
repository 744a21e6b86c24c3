//! Retrieval: documents are embedded once, found by their meaning, sent as context and cited. Memory stores none.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::io::Write;

use advisor_chain::chain::EmbeddingModel;
use advisor_chain::messages::BlockContent;
use advisor_chain::retrieval::{
    Document, InMemoryVectors, Retrieval, Retrieved, VectorRetriever, VectorStore, embed_documents,
};
use advisor_chain::{ChatMemoryAdvisor, Chunk, ConversationKey, InMemoryStore, client};
use advisor_testkit::{Answer, ScriptedModel, WordEmbeddings};
use futures::StreamExt;

/// The documents of a shop, by paragraphs.
fn documents() -> [Document; 3] {
    let document = |id: &str, title: &str, text: &str| {
        let url = format!("https://shop.example/{id}");
        let (title, url) = (Some(title.into()), Some(url.into()));
        Document { title, url, ..Document::new(id, text).with_metadata("language", "en") }
    };
    [
        document(
            "hours",
            "Opening hours",
            "The shop opens at nine and closes at six. On Sunday it stays closed.",
        ),
        document("returns", "Returns", "Goods can be returned within 30 days, with the receipt."),
        document("delivery", "Delivery", "A parcel takes two days. Delivery is free from 50 euros on."),
    ]
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `OpenAiEmbeddings::from_env()?` of the module `openai` embeds with a real model.
    let embeddings = WordEmbeddings::new();
    println!("Embedding with {}.", embeddings.model_name().unwrap_or("a model without a name"));
    let store = InMemoryVectors::new();
    store.upsert("default", embed_documents(&embeddings, documents()).await?).await?;

    let model = ScriptedModel::new([
        Answer::from_text("It opens at nine [1]."),
        Answer::from_text("Within 30 days [1], if you have the receipt."),
    ]);
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = client(model.clone())
        .advisor(memory.clone())
        .advisor(Retrieval::new(VectorRetriever { limit: 1, ..VectorRetriever::new(embeddings, store) }))
        .build()?;
    println!("{}", client.explain());

    for question in ["When does the shop open?", "Can goods be returned?"] {
        println!("\n? {question}");
        let mut turn = client.prompt().user(question).conversation("c1").stream();
        while let Some(chunk) = turn.next().await {
            match chunk? {
                Chunk::Closed { content, .. } => {
                    if let BlockContent::Citation(source) = content.content() {
                        let text =
                            |text: &Option<_>| text.as_ref().map_or_else(String::new, ToString::to_string);
                        print!("\n  source: {}, {}", text(&source.title), text(&source.url));
                    }
                }
                chunk => print!("{}", chunk.text().unwrap_or_default()),
            }
            std::io::stdout().flush()?;
        }
        let found = turn.turn().extensions().get::<Retrieved>().unwrap_or_default();
        println!("\n  score: {:?}", found.numbered(1).and_then(|document| document.score));
    }

    println!("\nRemembered:");
    for message in &memory.transcript(&ConversationKey::new("c1")?).await? {
        println!("{:?}: {}", message.role(), message.text());
    }
    Ok(())
}
