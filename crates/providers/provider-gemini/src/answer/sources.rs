//! The sources of an answer.

use std::collections::VecDeque;

use advisor_core::{Citation, Delta, DeltaKind, Opaque};
use provider_http::citation_of;
use serde_json::Value;

use crate::wire::FORMAT;

/// The fields of a candidate that report sources, beside `citationMetadata`.
const METADATA: [&str; 2] = ["groundingMetadata", "urlContextMetadata"];
/// The most sources of an answer.
const MOST: usize = 1 << 10;

/// The sources that were reported so far. Events repeat them, so they are emitted when the answer ends.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// The last report of each field.
    metadata: [Option<Value>; METADATA.len()],
    citations: Vec<Citation>,
}

impl Sources {
    /// Reads the sources in a candidate: its `groundingMetadata`, `urlContextMetadata` and `citationMetadata`.
    pub(super) fn read(&mut self, grounding: Value, url_context: Value, cited: &Value) {
        for (mut reported, kept) in [grounding, url_context].into_iter().zip(&mut self.metadata) {
            if !reported.is_null() && reported != Value::Object(Default::default()) {
                remove_copies(&mut reported);
                *kept = Some(reported);
            }
        }
        // `citations` at Vertex AI.
        let lists = ["citationSources", "citations"].iter().filter_map(|name| cited.get(*name)?.as_array());
        for source in lists.flatten() {
            self.cite(source);
        }
    }

    /// Emits the sources that were not emitted yet.
    pub(super) fn emit(&mut self, deltas: &mut VecDeque<Delta>) {
        if let [Some(grounding), _] = &self.metadata {
            let chunks = grounding.get("groundingChunks").and_then(Value::as_array).cloned();
            for chunk in chunks.into_iter().flatten() {
                // The only field is the kind of source, such as `web`.
                chunk
                    .as_object()
                    .into_iter()
                    .flat_map(|kinds| kinds.values())
                    .for_each(|source| self.cite(source));
            }
        }
        for citation in std::mem::take(&mut self.citations) {
            deltas.push_back(DeltaKind::Citation(Box::new(citation)).into());
        }
        for (name, kept) in METADATA.iter().zip(&mut self.metadata) {
            if let Some(value) = kept.take() {
                deltas.push_back(DeltaKind::Opaque(Box::new(Opaque::new(FORMAT, *name, value))).into());
            }
        }
    }

    fn cite(&mut self, source: &Value) {
        // `sourceUri` is the page of an image.
        if let Some(citation) = citation_of(source, [&["uri", "sourceUri"], &["title"], &["text"]])
            && !self.citations.contains(&citation)
            && self.citations.len() < MOST
        {
            self.citations.push(citation);
        }
    }
}

/// Removes the copies of the answer's text from its grounding. An editor of text would not see them. The indexes of the
/// segments have the same information.
fn remove_copies(grounding: &mut Value) {
    let supports = grounding.get_mut("groundingSupports").and_then(Value::as_array_mut);
    let segments =
        supports.into_iter().flatten().filter_map(|support| support.get_mut("segment")?.as_object_mut());
    segments.for_each(|segment| _ = segment.remove("text"));
}
