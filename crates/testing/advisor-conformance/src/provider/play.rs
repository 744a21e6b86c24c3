//! One answer, played at several splits and compared with its parts.

use advisor_core::{ChatResponse, Error};

use super::expected::Expected;
use super::family::{AnswerPart, WireFamily};
use super::laws::assert_lawful;
use super::run::{chain, question, read, server, within, written};
use crate::run::Run;
use advisor_testkit::Reply;
use advisor_testkit::split::random_offsets;

/// The seeds of the random splits.
const SEEDS: [u64; 3] = [1, 2, 3];

/// Plays an answer that every format can express.
pub(super) async fn play(family: &dyn WireFamily, parts: &[AnswerPart]) {
    assert!(play_if_expressible(family, parts).await, "every format can express {parts:?}");
}

/// Plays an answer. If the format cannot express it, reports that on standard error.
#[allow(clippy::print_stderr, reason = "a clause that passes without a check has to be seen")]
pub(super) async fn play_if_any(family: &dyn WireFamily, parts: &[AnswerPart]) {
    if !play_if_expressible(family, parts).await {
        eprintln!("left out: this format cannot express {parts:?}");
    }
}

/// Plays an answer in one piece, byte by byte and at random splits. Returns false if the format cannot express it.
async fn play_if_expressible(family: &dyn WireFamily, parts: &[AnswerPart]) -> bool {
    let Some(written) = written(family, parts) else { return false };
    let expected = Expected::new(family, parts);
    let reply = || family.reply(written.concat().into());
    let whole = play_once(family, reply()).await;
    assert_lawful(&whole, &expected);
    let length = reply().pieces().concat().len();
    let pieces = length / 20 + 2;
    let random = SEEDS.map(|seed| reply().split_at(&random_offsets(length, seed, pieces)));
    for split in [reply().split_every(1)].into_iter().chain(random) {
        let run = play_once(family, split).await;
        assert_eq!(run.chunks, whole.chunks, "law S5: a split changes the chunks of {parts:?}");
        assert_eq!(
            comparable(&run.end),
            comparable(&whole.end),
            "law S5: a split changes the end of {parts:?}"
        );
    }
    let server = server([reply()]).await;
    let called = within("the call", chain(family, &server).next_call(question())).await;
    assert_eq!(
        comparable(&called),
        comparable(&whole.end),
        "law S6: `next_call` and `next_stream` differ for {parts:?}"
    );
    true
}

async fn play_once(family: &dyn WireFamily, reply: Reply) -> Run {
    let server = server([reply]).await;
    read(&chain(family, &server), question()).await
}

/// Returns the end of an answer in a form that can be compared.
fn comparable(end: &Result<ChatResponse, Error>) -> Result<ChatResponse, (String, Option<ChatResponse>)> {
    match end {
        Ok(response) => Ok(response.clone()),
        Err(error) => Err((format!("{:?}: {error}", error.kind()), error.partial().cloned())),
    }
}
