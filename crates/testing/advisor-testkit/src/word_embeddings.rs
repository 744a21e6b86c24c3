//! `WordEmbeddings`: an embedding model by the words of a text.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use advisor_core::{Embedding, EmbeddingModel, Result, Text, async_trait};

/// The number of dimensions of each embedding.
const DIMENSIONS: usize = 256;

/// An embedding model for tests: texts with common words have close embeddings. Equal texts have equal ones, in every
/// process.
///
/// It compares words of letters and digits, in any letter case and order. Clones share the count of their calls.
///
/// # Example
/// ```
/// use advisor_core::EmbeddingModel;
/// use advisor_testkit::WordEmbeddings;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let texts = ["The shop opens at nine.", "When does the shop open?", "Cats sleep."].map(Into::into);
/// let found = WordEmbeddings::new().embed_all(&texts).await?;
/// assert!(found[0].cosine(&found[1]) > found[0].cosine(&found[2]));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct WordEmbeddings {
    calls: Arc<AtomicUsize>,
}

impl WordEmbeddings {
    /// Creates a model.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of calls so far, each with any number of texts.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl EmbeddingModel for WordEmbeddings {
    async fn embed(&self, texts: &[Text]) -> Result<Vec<Embedding>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        texts.iter().map(|text| embedding(text)).collect()
    }

    fn model_name(&self) -> Option<&str> {
        Some("words")
    }
}

fn embedding(text: &str) -> Result<Embedding> {
    let mut numbers = vec![0.0; DIMENSIONS];
    // A text without words has a direction, too.
    if let Some(first) = numbers.first_mut() {
        *first = 0.01;
    }
    for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let place = hash(&word.to_lowercase()) % (DIMENSIONS as u64 - 1) + 1;
        if let Some(number) = numbers.get_mut(place as usize) {
            *number += 1.0;
        }
    }
    Embedding::new(numbers)
}

/// FNV-1a: unlike the standard library's hash, it is the same in every version.
fn hash(word: &str) -> u64 {
    word.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn words_count_in_any_case_and_order() {
        let model = WordEmbeddings::new();
        let texts = ["Red fish", "fish, RED!", "", "red"].map(Into::into);
        let found = model.embed_all(&texts).await.unwrap();
        assert_eq!(found[0], found[1]);
        assert!(found[0].cosine(&found[3]).unwrap() > 0.5);
        assert!(found[0].cosine(&found[2]).unwrap() < 0.1);
        assert_eq!(model.calls(), 1);
    }
}
