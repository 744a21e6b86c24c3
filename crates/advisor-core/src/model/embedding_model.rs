//! `EmbeddingModel`, which turns texts into vectors, and `Embedding`, a vector with a direction.

use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use message_aggregator::Text;

use crate::{Error, ErrorKind, Result};

/// Turns texts into vectors whose directions are close if the texts mean similar things.
///
/// # Ordering
/// The embeddings have the order of the texts, one each. An empty list of texts gives an empty list, without a
/// request.
///
/// # Cancellation
/// Dropping the future stops the call, down to the connection.
///
/// # Errors
/// An error means that no text was embedded. The error kind says how the caller can react. A model that returns
/// another number of embeddings than texts has a defect: [`embed_all`](EmbeddingModel::embed_all) reports it.
///
/// # Example
/// ```
/// use advisor_core::{Embedding, EmbeddingModel, Result, Text, async_trait};
///
/// /// Embeds a text by its length. A real model embeds its meaning.
/// struct Lengths;
///
/// #[async_trait]
/// impl EmbeddingModel for Lengths {
///     async fn embed(&self, texts: &[Text]) -> Result<Vec<Embedding>> {
///         let embedding = |text: &Text| Embedding::new(vec![1.0, text.len() as f32]);
///         texts.iter().map(embedding).collect()
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let embeddings = Lengths.embed_all(&["one".into(), "three".into()]).await?;
/// assert_eq!(embeddings[1][..], [1.0, 5.0]);
/// # Ok(()) }
/// ```
#[async_trait]
pub trait EmbeddingModel: Send + Sync + 'static {
    /// Embeds the texts.
    async fn embed(&self, texts: &[Text]) -> Result<Vec<Embedding>>;

    /// Embeds the texts, and checks that there is one embedding per text. Callers use this one.
    ///
    /// # Errors
    /// As [`embed`](Self::embed), and of kind [`Protocol`](ErrorKind::Protocol) for another number of embeddings.
    async fn embed_all(&self, texts: &[Text]) -> Result<Vec<Embedding>> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let embeddings = self.embed(texts).await?;
        if embeddings.len() != texts.len() {
            let (texts, found) = (texts.len(), embeddings.len());
            let message = format!("the embedding model returned {found} embeddings for {texts} texts");
            return Err(Error::new(ErrorKind::Protocol { position: None }, message));
        }
        Ok(embeddings)
    }

    /// Returns the name of the model, for traces. A wrapper returns that of the wrapped model.
    fn model_name(&self) -> Option<&str> {
        None
    }
}

/// A shared model.
#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<M: EmbeddingModel + ?Sized> EmbeddingModel for Arc<M> {
    async fn embed(&self, texts: &[Text]) -> Result<Vec<Embedding>> {
        (**self).embed(texts).await
    }

    async fn embed_all(&self, texts: &[Text]) -> Result<Vec<Embedding>> {
        (**self).embed_all(texts).await
    }

    fn model_name(&self) -> Option<&str> {
        (**self).model_name()
    }
}

/// A vector with a direction: it has at least one number, all are finite, and one is not zero. Cheap to clone.
///
/// # Example
/// ```
/// use advisor_core::Embedding;
///
/// assert_eq!(Embedding::new(vec![3.0, 4.0])?.len(), 2);
/// assert!(Embedding::new(vec![0.0, 0.0]).is_err());
/// # Ok::<(), advisor_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    numbers: Arc<[f32]>,
    /// The Euclidean length. In `f64` neither the squares of large numbers overflow, nor do those of small ones
    /// vanish.
    length: f64,
}

impl Embedding {
    /// Creates an embedding of these numbers.
    ///
    /// # Errors
    /// Of kind [`Protocol`](ErrorKind::Protocol) if there is no number, if one is not finite, or if all are zero.
    pub fn new(numbers: impl Into<Arc<[f32]>>) -> Result<Self> {
        let numbers = numbers.into();
        let refused = |message| Err(Error::new(ErrorKind::Protocol { position: None }, message));
        if !numbers.iter().all(|number| number.is_finite()) {
            return refused("a number of an embedding is not finite");
        }
        if numbers.is_empty() {
            return refused("an embedding has no numbers");
        }
        let length = scalar_product(&numbers, &numbers).sqrt();
        if length == 0.0 {
            return refused("all numbers of an embedding are zero, so it has no direction");
        }
        Ok(Self { numbers, length })
    }

    /// Returns the cosine of the angle between two embeddings: 1 for the same direction, -1 for opposite ones.
    /// `None` if they have different numbers of dimensions.
    #[must_use]
    pub fn cosine(&self, other: &Self) -> Option<f32> {
        if self.len() != other.len() {
            return None;
        }
        let cosine = scalar_product(self, other) / (self.length * other.length);
        Some(cosine.clamp(-1.0, 1.0) as f32)
    }
}

fn scalar_product(one: &[f32], other: &[f32]) -> f64 {
    one.iter().zip(other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum()
}

impl Deref for Embedding {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_without_direction_are_refused() {
        for numbers in [&[][..], &[0.0, -0.0], &[1.0, f32::NAN], &[f32::NEG_INFINITY, 1.0]] {
            let kind = Embedding::new(numbers).unwrap_err().kind();
            assert_eq!(kind, ErrorKind::Protocol { position: None }, "{numbers:?}");
        }
        assert!(Embedding::new([0.0, f32::MIN_POSITIVE]).is_ok());
    }

    #[test]
    fn cosine_depends_on_direction_only() {
        let embedding = |numbers: [f32; 2]| Embedding::new(numbers).unwrap();
        let cosine = |one, other| embedding(one).cosine(&embedding(other)).unwrap();
        assert!((cosine([1.0, 0.0], [2.0, 0.0]) - 1.0).abs() < 1e-6);
        assert!((cosine([1.0, 0.0], [-3.0, 0.0]) + 1.0).abs() < 1e-6);
        assert!(cosine([1.0, 0.0], [0.0, 1.0]).abs() < 1e-6);
        // Neither end of the range of `f32` changes that.
        assert!((cosine([f32::MAX, f32::MAX], [f32::MAX, f32::MAX]) - 1.0).abs() < 1e-6);
        assert!((cosine([1e-45, 0.0], [1e-45, 1e-45]) - 0.707_106_77).abs() < 1e-6);
        assert_eq!(embedding([1.0, 0.0]).cosine(&Embedding::new([1.0]).unwrap()), None);
    }

    /// Returns one embedding, whatever it is asked.
    struct One;

    #[async_trait]
    impl EmbeddingModel for One {
        async fn embed(&self, _: &[Text]) -> Result<Vec<Embedding>> {
            Ok(vec![Embedding::new([1.0])?])
        }
    }

    #[tokio::test]
    async fn another_number_of_embeddings_is_an_error() {
        let model: Arc<dyn EmbeddingModel> = Arc::new(One);
        assert_eq!(model.embed_all(&[]).await.unwrap(), []);
        assert_eq!(model.embed_all(&["a".into()]).await.unwrap().len(), 1);
        let error = model.embed_all(&["a".into(), "b".into()]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol { position: None });
        assert_eq!(error.to_string(), "the embedding model returned 1 embeddings for 2 texts");
    }
}
