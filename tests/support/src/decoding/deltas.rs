//! Reads a body as deltas, and compares ways to cut it.

use advisor_core::{Delta, DeltaKind, Usage};
use bytes::Bytes;
use provider_http::answer::{AnswerDecoder, WireFormat};

use advisor_testkit::split;

/// The seed of the first random split.
const SEED: u64 = 20_261_122;
/// The bytes of one of several reads of a body.
const READ: usize = 700;

/// The deltas of a body up to its first error, which is in its `Debug` form.
///
/// Token counts are no deltas here: only their sum is compared.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Decoded {
    /// The deltas without token counts.
    pub deltas: Vec<Result<Delta, String>>,
    /// The sum of the token counts.
    pub usage: Usage,
}

/// Decodes a body that arrives in these pieces.
pub fn decoded<W: WireFormat>(mut decoder: AnswerDecoder<W>, pieces: &[&[u8]]) -> Decoded {
    let mut decoded = Decoded::default();
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece));
        decoded.take(&mut decoder);
    }
    decoder.finish();
    decoded.take(&mut decoder);
    decoded
}

impl Decoded {
    fn take<W: WireFormat>(&mut self, decoder: &mut AnswerDecoder<W>) {
        while !self.deltas.last().is_some_and(Result::is_err)
            && let Some(delta) = decoder.next()
        {
            match delta {
                Ok(Delta { kind: DeltaKind::Usage(usage), .. }) => self.usage.merge(&usage),
                delta => self.deltas.push(delta.map_err(|error| format!("{error:?}"))),
            }
        }
    }
}

/// Checks that a body gives the same deltas whole, in several reads, byte by byte and at random splits.
///
/// # Panics
/// If not. The message begins with `name`.
#[track_caller]
pub fn assert_same_at_any_split<W: WireFormat>(
    decoder: impl Fn() -> AnswerDecoder<W>,
    body: &[u8],
    name: &str,
) {
    let whole = decoded(decoder(), &[body]);
    for size in [READ, 1] {
        let pieces: Vec<&[u8]> = body.chunks(size).collect();
        assert_eq!(decoded(decoder(), &pieces), whole, "{name} in pieces of {size} bytes");
    }
    for split in split::random_splits(body, SEED, 10) {
        assert_eq!(decoded(decoder(), &split.pieces), whole, "{name} split with seed {}", split.seed);
    }
}
