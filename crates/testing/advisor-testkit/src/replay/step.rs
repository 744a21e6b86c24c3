//! The steps of a reply's body, and the insertion of faults between its bytes.

use crate::{Gate, split};
use bytes::Bytes;

/// One step of a reply's body. Steps are played in order; after the last one the reply ends normally.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Step {
    /// Writes these bytes at once, as exactly one HTTP chunk if the body is chunked. Empty bytes write nothing.
    Write(Bytes),
    /// Reports that the server has reached the gate, and waits until the gate is released.
    Wait(Gate),
    /// Writes nothing more and keeps the connection open until the client disconnects.
    Stall,
    /// Closes the connection at once. The last chunk, or a part of the `content-length`, is missing.
    Cut,
    /// Resets the connection (TCP RST).
    Reset,
}

impl Step {
    /// Returns the number of bytes of the body that this step writes.
    fn length(&self) -> usize {
        match self {
            Self::Write(bytes) => bytes.len(),
            _ => 0,
        }
    }

    /// Checks whether no step after this one is played.
    fn is_last(&self) -> bool {
        matches!(self, Self::Stall | Self::Cut | Self::Reset)
    }
}

/// Returns the number of bytes that all steps write.
pub(super) fn length(steps: &[Step]) -> usize {
    steps.iter().map(Step::length).sum()
}

/// Cuts every write at these offsets, which count all bytes of the body.
pub(super) fn split_at(steps: Vec<Step>, offsets: &[usize]) -> Vec<Step> {
    let mut begin = 0;
    let mut result = Vec::with_capacity(steps.len() + offsets.len());
    for step in steps {
        let length = step.length();
        match step {
            Step::Write(bytes) => {
                let inside: Vec<usize> =
                    offsets.iter().filter_map(|offset| offset.checked_sub(begin)).collect();
                let pieces = split::pieces(&bytes, &inside);
                result.extend(pieces.into_iter().map(|piece| Step::Write(bytes.slice_ref(piece))));
            }
            other => result.push(other),
        }
        begin += length;
    }
    result
}

/// Inserts `step` after the first `offset` bytes and after earlier insertions there, but before an ending at
/// that place. An offset beyond the end means the end. If `step` is itself an ending, the steps after it are
/// dropped.
pub(super) fn insert_after(steps: Vec<Step>, offset: usize, step: Step) -> Vec<Step> {
    let mut steps = split_at(steps, &[offset]);
    let mut begin = 0;
    let place = steps.iter().position(|step| {
        let follows = step.length() > 0 && begin >= offset;
        begin += step.length();
        follows || step.is_last()
    });
    let place = place.unwrap_or(steps.len());
    if step.is_last() {
        steps.truncate(place);
    }
    steps.insert(place, step);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the steps in short form: bytes as text, `.` for a gate, `|` for an ending.
    fn short(steps: &[Step]) -> Vec<String> {
        let words = steps.iter().map(|step| match step {
            Step::Write(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Step::Wait(_) => ".".to_owned(),
            Step::Stall | Step::Cut | Step::Reset => "|".to_owned(),
        });
        words.collect()
    }

    fn write(text: &'static str) -> Step {
        Step::Write(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn splits_count_the_whole_body() {
        let steps = vec![write("abc"), Step::Wait(Gate::new()), write("defg")];
        assert_eq!(short(&split_at(steps, &[1, 3, 5, 99])), ["a", "bc", ".", "de", "fg"]);
    }

    #[test]
    fn gate_follows_its_bytes_and_earlier_gates() {
        let gate = || Step::Wait(Gate::new());
        for (offset, expected) in [
            (0, vec![".", "abcd"]),
            (1, vec!["a", ".", "bcd"]),
            (4, vec!["abcd", "."]),
            (9, vec!["abcd", "."]),
        ] {
            let steps = insert_after(vec![write("abcd")], offset, gate());
            assert_eq!(short(&steps), expected);
        }
        let steps = insert_after(vec![write("abcd")], 2, gate());
        assert_eq!(short(&insert_after(steps, 2, gate())), ["ab", ".", ".", "cd"]);
    }

    #[test]
    fn ending_keeps_gates_and_drops_later_steps() {
        let gated = insert_after(vec![write("abcd")], 2, Step::Wait(Gate::new()));
        let cut = insert_after(gated, 2, Step::Cut);
        assert_eq!(short(&cut), ["ab", ".", "|"]);
        let gated_later =
            insert_after(insert_after(vec![write("abcd")], 2, Step::Reset), 2, Step::Wait(Gate::new()));
        assert_eq!(short(&gated_later), ["ab", ".", "|"]);
    }

    #[test]
    fn the_earliest_ending_wins() {
        let both = |first, second| {
            let steps = insert_after(vec![write("abcd")], first, Step::Cut);
            short(&insert_after(steps, second, Step::Stall))
        };
        assert_eq!(both(3, 1), ["a", "|"]);
        assert_eq!(both(1, 3)[..2], ["a", "|"]);
    }
}
