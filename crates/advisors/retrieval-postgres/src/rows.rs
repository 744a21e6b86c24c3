//! Conversion between documents and rows.

use std::collections::BTreeMap;

use advisor_core::Embedding;
use advisor_postgres::ServerError;
use common_advisors::retrieval::{Document, EmbeddedDocument, VectorError};
use serde_json::Value;
use tokio_postgres::Row;

/// The maximum length of a tenant and an id together, in bytes. They are the key of an index, whose rows are small.
const LONGEST_KEY: usize = 2_600;

/// The maximum size of an update in bytes. A message of the protocol and a value of the server end at 1 GiB.
const LARGEST_UPDATE: usize = 256 << 20;

/// The columns of an update, in the order of the ids. So updates at the same time lock rows in one order.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub(crate) ids: Vec<String>,
    pub(crate) bodies: Vec<String>,
    pub(crate) metadata: Vec<String>,
    pub(crate) embeddings: Vec<String>,
}

impl Columns {
    /// Converts the documents of a tenant. Of several with one id, the last counts.
    pub(crate) fn from_documents(
        tenant: &str,
        documents: Vec<EmbeddedDocument>,
    ) -> Result<Self, VectorError> {
        let pairs = documents.into_iter().map(|new| (without_nul(&new.document.id), new));
        let documents: BTreeMap<_, _> = pairs.collect();
        let (mut columns, mut bytes) = (Self::default(), 0);
        for (id, mut new) in documents {
            if tenant.len() + id.len() > LONGEST_KEY {
                return Err(refused(
                    "a tenant and an id have more than 2,600 bytes together; shorten the id",
                ));
            }
            new.document.score = None;
            let body = readable(&new.document)?;
            let metadata = json_without_nul(&Value::Object(new.document.metadata));
            let embedding = text_of(&new.embedding);
            bytes += id.len() + body.len() + metadata.len() + embedding.len();
            if bytes > LARGEST_UPDATE {
                return Err(refused("the documents of one update have more than 256 MiB; split the update"));
            }
            columns.ids.push(id);
            columns.bodies.push(body);
            columns.metadata.push(metadata);
            columns.embeddings.push(embedding);
        }
        Ok(columns)
    }
}

/// Writes a document as JSON, and checks that it can be read.
fn readable(document: &Document) -> Result<String, VectorError> {
    let body = serde_json::to_string(document).ok();
    let body = body.filter(|body| serde_json::from_str::<Document>(body).is_ok());
    body.ok_or_else(|| refused("the metadata of a document are nested too deeply; flatten them"))
}

fn refused(reason: &'static str) -> VectorError {
    VectorError::Refused { reason }
}

/// Writes an embedding as the extension reads it. It has the length 1, so that the server's squares of `f32` neither
/// overflow nor vanish.
pub(crate) fn text_of(embedding: &Embedding) -> String {
    let squares = embedding.iter().map(|number| f64::from(*number) * f64::from(*number));
    let length = squares.sum::<f64>().sqrt();
    let numbers = embedding.iter().map(|number| format!("{:?}", (f64::from(*number) / length) as f32));
    format!("[{}]", numbers.collect::<Vec<_>>().join(","))
}

/// Returns the document of a found row, with its score.
pub(crate) fn document(row: &Row) -> Result<Document, VectorError> {
    let body: &str = row.try_get("body").map_err(unavailable)?;
    let score: f64 = row.try_get("score").map_err(unavailable)?;
    // The error would quote the document.
    let document = serde_json::from_str::<Document>(body);
    let mut document = document.map_err(|_| VectorError::unavailable("a stored document cannot be read"))?;
    document.score = Some(score.clamp(-1.0, 1.0) as f32);
    Ok(document)
}

/// Converts an error of the server.
pub(crate) fn unavailable(error: impl Into<ServerError>) -> VectorError {
    VectorError::unavailable(error.into().source)
}

/// Writes a text without U+0000, which the server refuses. Different texts stay different.
pub(crate) fn without_nul(text: &str) -> String {
    if !text.contains(['\u{0}', '\u{1}']) {
        return text.into();
    }
    text.replace('\u{1}', "\u{1}1").replace('\u{0}', "\u{1}0")
}

/// Writes a value as JSON, all of whose texts are [without U+0000](without_nul).
pub(crate) fn json_without_nul(value: &Value) -> String {
    let json = value.to_string();
    // JSON escapes both letters.
    if json.contains("\\u000") { replaced(value).to_string() } else { json }
}

fn replaced(value: &Value) -> Value {
    match value {
        Value::String(text) => without_nul(text).into(),
        Value::Array(values) => values.iter().map(replaced).collect(),
        Value::Object(map) => map.iter().map(|(name, value)| (without_nul(name), replaced(value))).collect(),
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(id: &str) -> EmbeddedDocument {
        EmbeddedDocument { document: Document::new(id, "text"), embedding: Embedding::new([1.0]).unwrap() }
    }

    #[test]
    fn texts_without_nul_stay_different() {
        let texts = ["", "\u{0}", "\u{1}", "\u{1}0", "\u{1}1", "\u{0}0", "0", "\\u0000", "a\u{0}\u{1}b"];
        let written: std::collections::BTreeSet<_> = texts.iter().map(|text| without_nul(text)).collect();
        assert_eq!(written.len(), texts.len());
        assert!(written.iter().all(|text| !text.contains('\u{0}')));
        assert_eq!(
            json_without_nul(&json!({"a\u{0}": ["\u{0}", 1, "\\u0000"]})),
            r#"{"a\u00010":["\u00010",1,"\\u0000"]}"#
        );
        assert_eq!(json_without_nul(&json!({"a": "\\u0000"})), r#"{"a":"\\u0000"}"#);
    }

    #[test]
    fn embeddings_are_written_with_length_one() {
        let text = |numbers: &[f32]| text_of(&Embedding::new(numbers).unwrap());
        assert_eq!(text(&[3.0, -4.0, 0.0]), "[0.6,-0.8,0.0]");
        assert_eq!(text(&[f32::MAX, f32::MAX]), text(&[1e-45, 1e-45]));
        assert_eq!(text(&[1.0, 1e-40]), "[1.0,1e-40]");
    }

    #[test]
    fn documents_that_cannot_be_stored_are_refused() {
        let update = |document| Columns::from_documents("acme", vec![document]);
        assert!(update(document(&"i".repeat(2_596))).is_ok());
        assert!(matches!(update(document(&"i".repeat(2_597))), Err(VectorError::Refused { .. })));
        let mut deep = document("deep");
        let value = (0..200).fold(json!(1), |value, _| json!([value]));
        deep.document.metadata.insert("deep".into(), value);
        assert!(matches!(update(deep), Err(VectorError::Refused { .. })));
    }
}
