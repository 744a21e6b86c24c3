//! `path_segment`: a text, escaped for a URL.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that are escaped: all but letters, digits and `-._~`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Escapes a text for a segment of a path.
///
/// ```
/// use provider_http::server::path_segment;
///
/// assert_eq!(path_segment("my model/2"), "my%20model%2F2");
/// ```
#[must_use]
pub fn path_segment(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}
