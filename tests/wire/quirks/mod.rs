//! Quirks of servers, by the numbers of `README.md` beside this file.
//!
//! A quirk of an answer is a transcript in `transcripts`, whose README describes the format. Each one is played through
//! the provider's model, a chain and the tool loop: whole, byte by byte, at random splits, and over HTTP.
//! Quirks of what servers accept are tests in `requests`.

mod delivery;
mod notation;
mod play;
mod requests;
mod table;
mod transcript;

use advisor_tests::prelude::*;
use tokio::time::timeout;

use delivery::Delivery;
use play::{Place, play};
use transcript::{After, Transcript, WireFamily};

/// The number of random splits of each transcript, and the seed of the first.
const SPLITS: u64 = 8;
const SEED: u64 = 73;
/// The limit of a test's waits.
const LONGEST: Duration = Duration::from_secs(60);

/// Plays the transcripts of a wire family without a network, in every delivery.
async fn replay(family: WireFamily) {
    let mut differences = Vec::new();
    for transcript in Transcript::all(family) {
        let random = (SEED..SEED + SPLITS).map(Delivery::Random);
        for delivery in [Delivery::Whole, Delivery::Bytes].into_iter().chain(random) {
            let played = play(&transcript, Place::Canned(delivery.transport(&transcript))).await;
            if let Some(difference) = transcript.difference(&played, &format!("{delivery:?}")) {
                differences.push(difference);
                break;
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.concat());
}

/// Plays those over HTTP that need no clock: whole, and byte by byte.
async fn replay_over_http(family: WireFamily) {
    let mut differences = Vec::new();
    for transcript in Transcript::all(family).iter().filter(|transcript| transcript.after() != After::Silence)
    {
        for bytes in [usize::MAX, 1] {
            let replies = transcript.replies().into_iter().map(|reply| reply.split_every(bytes));
            let server = ReplayServer::start(replies).await.expect("a port");
            let played =
                timeout(LONGEST, play(transcript, Place::Server(server.url()))).await.expect("an end");
            if let Some(difference) = transcript.difference(&played, &format!("over HTTP by {bytes} bytes")) {
                differences.push(difference);
                break;
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.concat());
}

/// Makes the two tests of each wire family.
macro_rules! families {
    ($($name:ident: $family:ident,)*) => {
        $(mod $name {
            use super::*;

            #[tokio::test(start_paused = true)]
            async fn every_split_gives_the_expected_chunks() {
                replay(WireFamily::$family).await;
            }

            #[tokio::test]
            async fn http_gives_the_expected_chunks() {
                replay_over_http(WireFamily::$family).await;
            }
        })*
    };
}

families! {
    openai_chat: OpenAiChat,
    openai_responses: OpenAiResponses,
    anthropic: Anthropic,
    gemini: Gemini,
    ollama: Ollama,
}
