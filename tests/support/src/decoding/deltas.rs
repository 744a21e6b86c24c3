//! Reads a body as deltas, and compares the fast path with the parser.

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
/// The fast path may emit token counts less often. So these are no deltas here, and only their sum is compared.
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

/// Checks that a body is decoded as it is parsed: whole, in several reads, byte by byte and at random splits.
///
/// # Panics
/// If not. The message begins with `name`.
#[track_caller]
pub fn assert_decoded_as_parsed<W: WireFormat>(
    decoder: impl Fn() -> AnswerDecoder<W>,
    body: &[u8],
    name: &str,
) {
    let parsed = decoded(decoder().without_fast_path(), &[body]);
    for size in [body.len().max(1), READ, 1] {
        let pieces: Vec<&[u8]> = body.chunks(size).collect();
        assert_eq!(decoded(decoder(), &pieces), parsed, "{name} in pieces of {size} bytes");
    }
    for split in split::random_splits(body, SEED, 10) {
        assert_eq!(decoded(decoder(), &split.pieces), parsed, "{name} split with seed {}", split.seed);
    }
}
