//! `citation_of`: a source of an answer, by the keys of an API.

use advisor_core::{Citation, Text};
use serde_json::Value;

/// Reads a source. Each of the lists has the keys for its URL, its title and its quote; the first one with a text counts.
/// `None` if the source has none of them.
///
/// # Example
/// ```
/// use provider_http::citation_of;
/// use serde_json::json;
///
/// let keys: [&[&str]; 3] = [&["url", "uri"], &["title"], &["text"]];
/// let citation = citation_of(&json!({"url": "", "uri": "https://example.org", "title": "A"}), keys).unwrap();
/// assert_eq!((citation.url.as_deref(), citation.title.as_deref()), (Some("https://example.org"), Some("A")));
/// assert_eq!(citation_of(&json!({"id": 1}), keys), None);
/// ```
#[must_use]
pub fn citation_of(source: &Value, keys: [&[&str]; 3]) -> Option<Citation> {
    let text = |key: &&str| source.get(*key)?.as_str().filter(|text| !text.is_empty()).map(Text::from);
    let mut citation = Citation::default();
    [citation.url, citation.title, citation.quote] = keys.map(|keys| keys.iter().find_map(text));
    (citation != Citation::default()).then_some(citation)
}
