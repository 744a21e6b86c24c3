//! The clause that two turns at once do not mix.

use std::future::poll_fn;
use std::task::Poll;

use advisor_core::{Chunk, ErrorKind};
use futures::StreamExt;
use tokio::task::yield_now;

use super::inside::Inside;
use super::pieces::{Answered, answered};
use super::reading::{Items, Reader, request, within};
use super::script::{Cut, LAST, Pace, Script};
use super::subject::{Clause, Subject};
use advisor_testkit::Answer;
use advisor_testkit::split::random_offsets;

/// The turns that run at once.
const TURNS: [&str; 2] = ["one", "two"];
/// The seeds of the orders in which they are polled.
const SEEDS: u64 = 12;

const APART: Clause = Clause {
    law: "law S7",
    rule: "a turn gets the same chunks whether or not another turn runs at once",
    remedy: "keep the state of a turn in the returned stream, in `Advisor::State` or in an extension of the turn, \
             and none in the advisor",
};

/// The chunks of a turn, and its end.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    chunks: Vec<Chunk>,
    end: Option<Result<Answered, ErrorKind>>,
}

/// Two turns through one advisor, polled in random order, get what each gets alone. The same holds for a turn beside
/// one that is dropped.
pub async fn law_s7_two_turns_at_once_do_not_mix(subject: &Subject) {
    let [one, two] = TURNS;
    let alone = [
        outcomes(subject, &[one], Other::Finishes, 0).await,
        outcomes(subject, &[two], Other::Finishes, 0).await,
    ];
    let alone: Vec<_> = alone.into_iter().flatten().collect();
    for seed in 1..=SEEDS {
        for other in [Other::Finishes, Other::IsDropped] {
            let together = outcomes(subject, &TURNS, other, seed).await;
            for ((turn, alone), together) in TURNS.iter().zip(&alone).zip(&together) {
                let is_cut = *turn == two && other == Other::IsDropped;
                subject.breaks_if(!is_cut && alone != together, APART, || {
                    format!("turn {turn} alone: {alone:?}\n  beside another one: {together:?}")
                });
            }
        }
    }
}

/// The fate of the second turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Other {
    Finishes,
    IsDropped,
}

/// Runs these turns through one chain, and polls them in an order that `seed` determines.
async fn outcomes(subject: &Subject, turns: &[&str], other: Other, seed: u64) -> Vec<Outcome> {
    let chain = subject.chain(model(subject));
    let mut running: Vec<_> = turns
        .iter()
        .map(|turn| (Some(Reader::Advisor.open(&chain, request(subject, turn))), Outcome::default()))
        .collect();
    // Polls the second turn at these steps, and drops it at the middle one.
    let second = random_offsets(400, seed, 200);
    let run = async {
        for step in 0.. {
            let is_second = turns.len() > 1 && second.contains(&(step % 400));
            let place = usize::from(is_second);
            if other == Other::IsDropped
                && turns.len() > 1
                && step == second.get(10).copied().unwrap_or_default()
            {
                running.iter_mut().skip(1).for_each(|(items, _)| *items = None);
            }
            if let Some((items, outcome)) = running.get_mut(place) {
                poll_once(items, outcome).await;
            }
            if running.iter().all(|(items, _)| items.is_none()) {
                break;
            }
            yield_now().await;
        }
    };
    within(subject, run).await;
    running.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Takes the next item of a turn if it is ready. The turn becomes `None` at its end.
async fn poll_once(items: &mut Option<Items>, outcome: &mut Outcome) {
    let Some(running) = items else { return };
    match poll_fn(|cx| Poll::Ready(running.poll_next_unpin(cx))).await {
        Poll::Ready(Some(Ok(Chunk::Completed(response)))) => {
            outcome.end = Some(Ok(answered(&response)));
        }
        Poll::Ready(Some(Ok(chunk))) => outcome.chunks.push(chunk),
        Poll::Ready(Some(Err(error))) => outcome.end = Some(Err(error.kind())),
        Poll::Ready(None) => *items = None,
        Poll::Pending => {}
    }
}

/// Returns a model that answers the two turns differently, with a pause before each delta.
fn model(subject: &Subject) -> Inside {
    let scripts = TURNS.map(|turn| Script::calls_with(&format!("{} This is for {turn}.", subject.answer)));
    Inside::from_fn(move |prompt| {
        let place = usize::from(prompt.turn.as_str() != TURNS[0]);
        match (prompt.round, scripts.get(place)) {
            (1, Some(script)) => script.whole(Cut::Every(5), Pace::WithPauses),
            _ => Answer::from_text(LAST),
        }
    })
}
