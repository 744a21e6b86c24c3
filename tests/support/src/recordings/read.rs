//! Checks of a reader over recordings.

use serde_json::Value;

use super::Recording;
use advisor_testkit::split;

/// The seed of the first of each recording's random splits.
const SEED: u64 = 20_260_101;
/// The random splits of each recording.
const SPLITS: usize = 20;

/// Checks that each recording, read whole, gives the expected outcome. `read` returns the outcome of a body in pieces,
/// in the form of [`Recording::expected`].
///
/// # Panics
/// If not. The message has all differences.
#[track_caller]
pub fn assert_expected(
    recordings: impl IntoIterator<Item = Recording>,
    read: impl Fn(&Recording, &[&[u8]]) -> Value,
) {
    let mut wrong = Vec::new();
    for recording in recordings {
        let outcome = read(&recording, &[&recording.body]);
        let differences = recording.differences(&outcome);
        if !differences.is_empty() {
            wrong.push(format!("{}: {differences:?}\n{outcome:#}", recording.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Checks that each recording gives the same outcome byte by byte as whole.
///
/// # Panics
/// If not.
#[track_caller]
pub fn assert_same_byte_by_byte(
    recordings: impl IntoIterator<Item = Recording>,
    read: impl Fn(&Recording, &[&[u8]]) -> Value,
) {
    for recording in recordings {
        let bytes: Vec<&[u8]> = recording.body.chunks(1).collect();
        let whole = read(&recording, &[&recording.body]);
        assert_eq!(read(&recording, &bytes), whole, "{}", recording.name);
    }
}

/// Checks that each recording gives the same outcome at random splits as whole.
///
/// # Panics
/// If not. The message has the seed of the split.
#[track_caller]
pub fn assert_same_at_random_splits(
    recordings: impl IntoIterator<Item = Recording>,
    read: impl Fn(&Recording, &[&[u8]]) -> Value,
) {
    for recording in recordings {
        let whole = read(&recording, &[&recording.body]);
        for split in split::random_splits(&recording.body, SEED, SPLITS) {
            let outcome = read(&recording, &split.pieces);
            assert_eq!(outcome, whole, "{} split with seed {}", recording.name, split.seed);
        }
    }
}

/// Checks that each recording gives the same outcome if no event is like the one before, up to its text: readers may have a
/// shortcut past such events.
///
/// # Panics
/// If not.
#[track_caller]
pub fn assert_same_without_repeats(
    recordings: impl IntoIterator<Item = Recording>,
    read: impl Fn(&Recording, &[&[u8]]) -> Value,
) {
    for recording in recordings {
        let mut numbered = Vec::with_capacity(2 * recording.body.len());
        for (number, line) in recording.body.split_inclusive(|byte| *byte == b'\n').enumerate() {
            match line.iter().position(|byte| *byte == b'{').map(|at| line.split_at(at + 1)) {
                Some((before @ (b"{" | b"data:{" | b"data: {"), behind @ [b'"', ..])) => {
                    numbered.extend([before, format!("\"number {number}\":0,").as_bytes(), behind].concat());
                }
                _ => numbered.extend(line),
            }
        }
        let whole = read(&recording, &[&recording.body]);
        assert_eq!(read(&recording, &[&numbered]), whole, "{}", recording.name);
    }
}
