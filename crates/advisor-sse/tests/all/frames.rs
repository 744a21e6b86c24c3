//! The frames of a stream in any protocol.

/// Returns whether the protocol has server-sent events.
pub(crate) fn has_events(protocol: &str) -> bool {
    protocol != "JSON lines"
}

/// Returns the frames of a stream: its events, or its lines.
pub(crate) fn frames_of<'a>(protocol: &str, stream: &'a str) -> Vec<&'a str> {
    stream.split_inclusive(if has_events(protocol) { "\n\n" } else { "\n" }).collect()
}
