//! `marker_at` and `find_close`: markers in text that may be cut within them.

use super::input::Tail;
use super::steps;

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
    let pairs = text.bytes().zip(marker.bytes());
    let same = pairs.take_while(|(one, other)| one.eq_ignore_ascii_case(other)).count();
    steps::count(same + 1);
    match same {
        same if same == marker.len() => Marker::Whole,
        same if same == text.len() => Marker::Maybe,
        _ => Marker::None,
    }
}

/// Returns the bytes of white space at the start of a text, up to a limit.
pub(super) fn space_within(text: &str, most: usize) -> usize {
    let window = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    let space = window.len() - window.trim_start().len();
    steps::count(space + 1);
    space
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
    let Some(first) = close.chars().next() else { return Close::At(0) };
    steps::count(text.len());
    for (at, _) in text.match_indices(first) {
        match marker_at(text.get(at..).unwrap_or_default(), close) {
            Marker::Whole => return Close::At(at),
            Marker::Maybe if tail == Tail::Open => return Close::Beyond(at),
            Marker::Maybe | Marker::None => {}
        }
    }
    Close::Beyond(text.len())
}
