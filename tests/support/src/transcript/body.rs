//! The bytes of a scripted body.

use bytes::Bytes;
use serde_json::Value;

/// A body that is appended to.
#[derive(Clone, Debug, Default)]
pub(super) struct Body(Vec<u8>);

impl Body {
    pub(super) fn push(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.extend_from_slice(bytes.as_ref());
    }

    /// Appends a server-sent event; its name is the `type` of the data.
    pub(super) fn named_event(&mut self, data: &Value) {
        let name = data.get("type").and_then(Value::as_str).unwrap_or_default();
        self.push(format!("event: {name}\ndata: {data}\n\n"));
    }

    pub(super) fn into_bytes(self) -> Bytes {
        Bytes::from(self.0)
    }
}
