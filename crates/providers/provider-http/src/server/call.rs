//! `Call`: a request to a server, which can be sent repeatedly.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Uri};

use super::address::authority;
use crate::names::WireNames;

/// A POST request that can be sent repeatedly, with the data for reading its answers.
#[non_exhaustive]
pub struct Call {
    /// The full address.
    pub uri: Uri,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The tool names of the request, which the names in an answer mean.
    pub tools: Option<Arc<WireNames>>,
}

impl Call {
    /// Returns the host and port of the address. Any other part of it may hold a key.
    pub(super) fn host(&self) -> String {
        authority(&self.uri).unwrap_or_default()
    }
}

/// Shows the host and the names of the headers. The rest may hold a key or content of the conversation.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("host", &self.host())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::CONTENT_TYPE;

    use super::*;

    #[test]
    fn law_r3_debug_of_call_shows_no_key() {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("canary"))]);
        let uri = Uri::from_static("http://example.org:8080/canary?key=canary");
        let call = Call { uri, headers, body: "canary".into(), tools: None };
        let shown = format!("{call:?}");
        assert!(shown.contains("example.org:8080") && !shown.contains("canary"), "{shown}");
    }
}
