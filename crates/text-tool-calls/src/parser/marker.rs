use super::input::Tail;

/// Whether a text begins with a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    Whole,
    /// Perhaps, depending on what follows.
    Maybe,
    None,
}

/// Compares the beginning of a text with a marker; upper and lower case of ASCII letters are equal.
pub(super) fn marker_at(text: &str, marker: &str) -> Marker {
    let same = text.bytes().zip(marker.bytes()).all(|(one, other)| one.eq_ignore_ascii_case(&other));
    match same {
        true if text.len() >= marker.len() => Marker::Whole,
        true => Marker::Maybe,
        false => Marker::None,
    }
}

/// The text before the closing marker.
pub(super) enum Close {
    /// The marker follows after this many bytes.
    At(usize),
    /// This many bytes are certainly before it.
    Beyond(usize),
}

/// Finds the closing marker. At the end of the text, nothing is undecided.
pub(super) fn find_close(text: &str, close: &str, tail: Tail) -> Close {
    let first = close.chars().next().unwrap_or_default();
    for (at, _) in text.match_indices(first) {
        match marker_at(text.get(at..).unwrap_or_default(), close) {
            Marker::Whole => return Close::At(at),
            Marker::Maybe if tail == Tail::Open => return Close::Beyond(at),
            Marker::Maybe | Marker::None => {}
        }
    }
    Close::Beyond(text.len())
}
