//! Advisors that change the request: its system text, its tools, its documents.

use advisor_chain::advisors::{OnlyTools, ReReading, SystemTemplate, ToolSearch};
use advisor_chain::messages::Text;
use advisor_chain::retrieval::{
    Document, Embedding, EmbeddingModel, InMemoryVectors, PastTurns, Query, Retrieval,
};
use advisor_chain::tools::ToolSet;
use advisor_chain::{Result, async_trait};

use super::{Base, Row, Touch, tool};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("SystemTemplate", || {
            SystemTemplate::new("You help in {language}.".parse().unwrap()).with("language", "English")
        }),
        Row::new("ReReading", || ReReading),
        Row::new("OnlyTools", || OnlyTools::new(["f"])).in_a(Base::Offer, ""),
        Row::new("ToolSearch", || {
            let tools =
                (0..20).fold(ToolSet::new(), |tools, number| tools.with(tool(&format!("tool_{number}"))));
            ToolSearch::new(&tools).unwrap()
        })
        .in_a(Base::Text, ", 20 tools"),
        Row::new("Retrieval", || {
            Retrieval::new(|_: Query| async {
                Ok(vec![
                    titled("Opening hours", Document::new("hours", "The shop opens at nine.")),
                    titled("Returns", Document::new("returns", "Goods can be returned within 30 days.")),
                ])
            })
        })
        .in_a(Base::Text, ", two documents")
        .touching(Touch::Works(1_100)),
        Row::new("PastTurns", || PastTurns::new(OneDirection, InMemoryVectors::new()))
            .touching(Touch::Works(30)),
    ]
}

fn titled(title: &str, document: Document) -> Document {
    Document { title: Some(title.into()), ..document }
}

/// An embedding model without any work: all texts mean the same.
struct OneDirection;

#[async_trait]
impl EmbeddingModel for OneDirection {
    async fn embed(&self, texts: &[Text]) -> Result<Vec<Embedding>> {
        texts.iter().map(|_| Embedding::new(vec![1.0, 0.0])).collect()
    }
}
