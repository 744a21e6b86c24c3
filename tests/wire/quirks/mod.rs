//! Quirks of servers, by the numbers of `README.md` beside this file.
//!
//! A quirk of an answer is a transcript in `transcripts`, whose README describes the format. Each one is played through
//! the provider's model, a chain and the tool loop: whole, byte by byte, and at random splits.
//! Quirks of what servers accept are tests in `requests`.

mod delivery;
mod notation;
mod play;
mod requests;
mod table;
mod transcript;

use delivery::Delivery;
use play::play;
use transcript::{Transcript, WireFamily};

/// The number of random splits of each transcript, and the seed of the first.
const SPLITS: u64 = 8;
const SEED: u64 = 73;

#[tokio::test(start_paused = true)]
async fn every_split_of_each_transcript_gives_the_expected_chunks() {
    let mut differences = Vec::new();
    for transcript in WireFamily::ALL.into_iter().flat_map(Transcript::all) {
        let random = (SEED..SEED + SPLITS).map(Delivery::Random);
        for delivery in [Delivery::Whole, Delivery::Bytes].into_iter().chain(random) {
            let played = play(&transcript, delivery.transport(&transcript)).await;
            if let Some(difference) = transcript.difference(&played, &format!("{delivery:?}")) {
                differences.push(difference);
                break;
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.concat());
}
