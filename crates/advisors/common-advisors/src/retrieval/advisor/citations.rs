//! `CitationEditor`: adds citations for the numbers in the final text.

use std::sync::Arc;

use advisor_core::{
    Block, BlockContent, BlockId, ChatResponse, Chunk, ChunkEditor, Citation, EditedChunks, ProviderData,
};
use serde_json::json;

use crate::retrieval::Document;

/// The format of the data of a citation: the number of its document, and the id, such as `{"number": 1, "id": "a"}`.
const CITATION_FORMAT: &str = "retrieval";

/// The citations of numbered documents. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Citations {
    /// The number of the first document.
    first: usize,
    blocks: Arc<[Block]>,
}

impl Citations {
    pub(super) fn new(first: usize, documents: &[Document]) -> Self {
        let blocks = (first..).zip(documents).map(|(number, document)| citation(number, document));
        Self { first, blocks: blocks.collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns a citation for each document that a text names, in this order.
    fn named_in(&self, text: &str) -> Vec<Block> {
        let known = self.first..self.first + self.blocks.len();
        let numbers = numbers_in(text, |number| known.contains(&number));
        numbers.into_iter().filter_map(|number| self.blocks.get(number - self.first).cloned()).collect()
    }
}

/// Citations are remembered and documents are not, so a citation quotes nothing.
fn citation(number: usize, document: &Document) -> Block {
    let mut citation = Citation::default();
    citation.url = document.url.clone();
    citation.title = document.title.clone().or_else(|| Some(document.id.clone()));
    let data = ProviderData::new(CITATION_FORMAT, json!({"number": number, "id": document.id}));
    Block::with_data(BlockContent::Citation(citation), vec![data])
}

/// Adds a citation for each document that a text of the final answer names, behind that text.
pub(super) struct CitationEditor {
    citations: Citations,
    /// The texts of the round that have ended, with the citations of the documents that they name.
    cited: Vec<(BlockId, Vec<Block>)>,
}

impl CitationEditor {
    pub(super) fn new(citations: Citations) -> Self {
        Self { citations, cited: Vec::new() }
    }
}

impl ChunkEditor for CitationEditor {
    fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
        match &chunk {
            Chunk::Closed { block, content } => {
                if let Some(text) = content.as_text() {
                    self.cited.push((*block, self.citations.named_in(text)));
                }
            }
            Chunk::AttemptRestarted { round } => self.cited.retain(|(block, _)| block.round != *round),
            _ => {}
        }
        out.push(chunk);
    }

    fn end(&mut self, response: &ChatResponse, out: &mut EditedChunks<'_>) {
        let cited = std::mem::take(&mut self.cited);
        // The answer goes on after its calls.
        if response.message().tool_calls().next().is_some() {
            return;
        }
        for (block, citations) in cited {
            for citation in citations {
                out.add(block, citation);
            }
        }
    }
}

/// Returns the numbers in `[1]` and `[2, 3]` that are known, each once, in the order in which they are named.
fn numbers_in(text: &str, is_known: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut numbers = Vec::new();
    for bracket in text.split('[').skip(1) {
        let Some((list, _)) = bracket.split_once(']') else { continue };
        let named: Option<Vec<usize>> = list.split(',').map(number).collect();
        for number in named.into_iter().flatten() {
            // There are few known ones, so that a text with many numbers costs no more.
            if is_known(number) && !numbers.contains(&number) {
                numbers.push(number);
            }
        }
    }
    numbers
}

fn number(text: &str) -> Option<usize> {
    let digits = text.trim_matches(' ');
    digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_brackets_are_citations() {
        let cases: [(&str, &[usize]); 9] = [
            ("Nothing.", &[]),
            ("At nine [1].", &[1]),
            ("At nine.[2][10] Closed [2].", &[2, 10]),
            ("Both [3, 1] and [1,2].", &[3, 1, 2]),
            ("[1](https://a.example)", &[1]),
            ("[a] [] [1a] [+1] [-1] [1.5] [1;2] [1, x]", &[]),
            ("[99999999999999999999999]", &[]),
            ("[ [7] [8", &[7]),
            ("[[5]]", &[5]),
        ];
        for (text, numbers) in cases {
            assert_eq!(numbers_in(text, |_| true), numbers, "{text}");
        }
        assert_eq!(numbers_in("[1] [2] [3]", |number| number == 2), [2]);
    }
}
