//! Deterministic splitting of bytes.
//!
//! A network may cut a body anywhere: inside a line ending, inside a character, between two events. A decoder
//! is correct if every way of cutting gives the same result. These functions produce the ways: many random ones
//! ([`random_splits`]), or one at chosen offsets ([`pieces`]).
//!
//! # The random numbers
//!
//! The generator is SplitMix64. The state starts at the seed, and each step adds `0x9E3779B97F4A7C15` to it. A
//! step returns the state after `z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9`, `z = (z ^ z >> 27) *
//! 0x94D049BB133111EB`, `z ^ z >> 31` (64 bits, wrapping). A number below `n` is the upper half of the 128-bit
//! product of such a value and `n`. This never changes: a seed from an old failure always gives the same split,
//! on every machine.

use std::collections::BTreeSet;

/// Cuts `bytes` at `offsets`.
///
/// The order of the offsets does not matter. Repeated ones, 0 and those at or beyond the end cut nothing. No
/// piece is empty, and the joined pieces are `bytes` again.
///
/// ```
/// use advisor_testkit::split::pieces;
///
/// assert_eq!(pieces(b"data: x", &[4, 6]), [&b"data"[..], b": ", b"x"]);
/// assert_eq!(pieces(b"data", &[0, 4, 99]), [b"data"]);
/// ```
pub fn pieces<'a>(bytes: &'a [u8], offsets: &[usize]) -> Vec<&'a [u8]> {
    let cuts: BTreeSet<usize> =
        offsets.iter().copied().filter(|offset| (1..bytes.len()).contains(offset)).collect();
    let mut rest = bytes;
    let mut done = 0;
    let mut pieces = Vec::with_capacity(cuts.len() + 1);
    for cut in cuts {
        let Some((piece, after)) = rest.split_at_checked(cut - done) else {
            break;
        };
        pieces.push(piece);
        rest = after;
        done = cut;
    }
    if !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}

/// One way to cut bytes, and the seed that reproduces it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RandomSplit<'a> {
    /// `random_splits(bytes, seed, 1)` gives this split again. Print it when a check fails.
    pub seed: u64,
    /// The pieces in order; none is empty.
    pub pieces: Vec<&'a [u8]>,
}

/// Returns `count` random ways to cut `bytes`, with the seeds `seed`, `seed + 1`, ….
///
/// Each split first draws the length of its largest piece, 2 to the power of 0 to 10 bytes. Every piece then
/// has a random length from 1 to that. So some splits are byte by byte, and some are coarse.
///
/// ```
/// use advisor_testkit::split::random_splits;
///
/// let body = b"data: {\"a\":1}\n\n".repeat(20);
/// for split in random_splits(&body, 7, 20) {
///     assert_eq!(split.pieces.concat(), body, "seed {}", split.seed);
/// }
/// ```
pub fn random_splits(bytes: &[u8], seed: u64, count: usize) -> impl Iterator<Item = RandomSplit<'_>> {
    (0_u64..).take(count).map(move |i| {
        let seed = seed.wrapping_add(i);
        let pieces = pieces_of_random_length(bytes, &mut SplitMix64::new(seed));
        RandomSplit { seed, pieces }
    })
}

/// Returns ascending offsets that cut `length` bytes into `pieces` pieces, or into fewer if there are not
/// enough bytes.
///
/// Every set of offsets is equally likely. There are at most `length - 1` offsets: no piece is empty.
///
/// ```
/// use advisor_testkit::split::random_offsets;
///
/// let offsets = random_offsets(1000, 7, 4);
/// assert_eq!(offsets.len(), 3);
/// assert_eq!(offsets, random_offsets(1000, 7, 4));
/// ```
pub fn random_offsets(length: usize, seed: u64, pieces: usize) -> Vec<usize> {
    let places = length.saturating_sub(1);
    let wanted = pieces.saturating_sub(1).min(places);
    let mut numbers = SplitMix64::new(seed);
    // Floyd's sampling: as many draws as offsets, each set equally likely.
    let mut offsets = BTreeSet::new();
    for last in places - wanted..places {
        let drawn = 1 + numbers.below(last + 1);
        if !offsets.insert(drawn) {
            offsets.insert(last + 1);
        }
    }
    offsets.into_iter().collect()
}

fn pieces_of_random_length<'a>(mut rest: &'a [u8], numbers: &mut SplitMix64) -> Vec<&'a [u8]> {
    let largest = 1 << numbers.below(11);
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let length = (1 + numbers.below(largest)).min(rest.len());
        let (piece, after) = rest.split_at(length);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// The generator that the module docs describe.
struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to `bound - 1`; 0 if `bound` is 0.
    fn below(&mut self, bound: usize) -> usize {
        let product = u128::from(self.next()) * bound as u128;
        (product >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        let mut numbers = SplitMix64::new(1_234_567);
        let first: Vec<u64> = (0..5).map(|_| numbers.next()).collect();
        // The reference implementation's output for this seed.
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
                4_593_380_528_125_082_431, 16_408_922_859_458_223_821
            ]
        );
    }

    #[test]
    fn pieces_ignore_order_doubles_and_places_outside() {
        assert_eq!(pieces(b"abcdef", &[4, 2, 2, 0, 6, 70]), [&b"ab"[..], b"cd", b"ef"]);
        assert_eq!(pieces(b"abc", &[]), [b"abc"]);
        assert!(pieces(b"", &[0, 1]).is_empty());
    }

    #[test]
    fn random_splits_conserve_bytes_and_reproduce_from_seed() {
        let bytes: Vec<u8> = (0..=255).cycle().take(3000).collect();
        let splits: Vec<_> = random_splits(&bytes, 40, 50).collect();
        assert_eq!(splits.len(), 50);
        for split in &splits {
            assert_eq!(split.pieces.concat(), bytes);
            assert!(split.pieces.iter().all(|piece| !piece.is_empty()));
            let again = random_splits(&bytes, split.seed, 1).next();
            assert_eq!(again.as_ref(), Some(split));
        }
        let counts: BTreeSet<usize> = splits.iter().map(|split| split.pieces.len()).collect();
        assert!(counts.contains(&3000), "one of fifty goes byte by byte: {counts:?}");
        assert!(counts.first().is_some_and(|&least| least < 20), "one of fifty is coarse: {counts:?}");
    }

    #[test]
    fn random_offsets_are_as_many_as_fit() {
        for length in [0, 1, 2, 10, 1000] {
            for wanted in [0, 1, 2, 7, 2000] {
                let offsets = random_offsets(length, 3, wanted);
                assert_eq!(offsets.len(), wanted.saturating_sub(1).min(length.saturating_sub(1)));
                assert!(offsets.iter().all(|&offset| (1..length).contains(&offset)));
            }
        }
        assert_ne!(random_offsets(1000, 1, 9), random_offsets(1000, 2, 9));
    }
}
