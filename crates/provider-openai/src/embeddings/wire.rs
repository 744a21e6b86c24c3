//! The JSON of requests for embeddings and of their answers.

use advisor_core::{Embedding, Error, ErrorKind, Result, Text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
pub(super) struct Body<'a> {
    pub(super) model: &'a str,
    pub(super) input: &'a [Text],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dimensions: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) encoding_format: Option<&'static str>,
}

#[derive(Deserialize)]
pub(super) struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    /// The position of its text. Without one, the position in the answer counts.
    #[serde(default)]
    index: Option<usize>,
    embedding: Numbers,
}

/// The numbers of an embedding.
#[derive(Deserialize)]
#[serde(untagged)]
enum Numbers {
    List(Vec<f32>),
    /// Little-endian `f32`s in Base64.
    Base64(String),
}

impl Answer {
    /// Returns the embeddings in the order of their texts.
    pub(super) fn into_embeddings(self, texts: usize) -> Result<Vec<Embedding>> {
        let found = self.data.len();
        let mut embeddings = vec![None; texts];
        for (position, item) in self.data.into_iter().enumerate() {
            match embeddings.get_mut(item.index.unwrap_or(position)) {
                Some(place @ None) => *place = Some(item.embedding.into_embedding()?),
                Some(Some(_)) => return Err(violation("the server embedded a text twice")),
                None => return Err(violation("the server embedded a text that it was not sent")),
            }
        }
        let complete: Option<Vec<_>> = embeddings.into_iter().collect();
        complete.ok_or_else(|| violation(format!("the server returned {found} embeddings for {texts} texts")))
    }
}

impl Numbers {
    fn into_embedding(self) -> Result<Embedding> {
        let numbers = match self {
            Self::List(numbers) => numbers,
            Self::Base64(text) => from_base64(&text)?,
        };
        Embedding::new(numbers)
    }
}

fn from_base64(text: &str) -> Result<Vec<f32>> {
    let bytes = STANDARD.decode(text).map_err(|_| violation("an embedding is no valid Base64"))?;
    let (numbers, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        return Err(violation("an embedding in Base64 ends in the middle of a number"));
    }
    Ok(numbers.iter().copied().map(f32::from_le_bytes).collect())
}

fn violation(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Protocol { position: None }, message)
}
