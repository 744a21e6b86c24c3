//! `with_comments`: adds a comment to each event of a stream, so that none matches a template.

const COMMENT: &[u8] = b": parsed\n";

/// Adds a comment to each server-sent event, so that none matches a template and all are parsed. `None` for bodies
/// that are no stream of events, or whose lines end in another way.
#[must_use]
pub fn with_comments(body: &[u8]) -> Option<Vec<u8>> {
    let is_stream = body.starts_with(b"data:") || body.starts_with(b"event:");
    if !is_stream || body.contains(&b'\r') {
        return None;
    }
    let mut commented = COMMENT.to_vec();
    for (at, byte) in body.iter().enumerate() {
        commented.push(*byte);
        let rest = body.get(at + 1..).unwrap_or_default();
        if body[..=at].ends_with(b"\n\n") && !rest.is_empty() {
            commented.extend_from_slice(COMMENT);
        }
    }
    Some(commented)
}
