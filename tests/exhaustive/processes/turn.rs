//! The turn of a child, which reports every event and stops at a point.

use std::path::PathBuf;

use advisor_chain::chain::Spawner;
use advisor_conformance::crash::{AwaitPoints, Event, LeasePoints, with_leases};
use advisor_tests::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::processes::chain::{Scenario, Where, approved, client, memory, model, tools};
use crate::processes::child::{Report, stand, tell};
use crate::processes::places::Address;

/// A turn, and where it ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) address: Address,
    pub(crate) conversation: String,
    pub(crate) turn: String,
    pub(crate) said: String,
    pub(crate) scenario: Scenario,
    pub(crate) memory: Where,
    pub(crate) starts: PathBuf,
    /// Nothing if it is to come to its end.
    pub(crate) stop: Option<Stop>,
}

/// The point at which a child is killed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Stop {
    pub(crate) point: usize,
    /// Whether the child waits at the point. If not, it is killed during its next action.
    pub(crate) stands: bool,
    /// The delay after the child has reported the point.
    pub(crate) after: Duration,
}

pub(crate) async fn run(job: Job) {
    let points = AwaitPoints::new();
    points.watch(teller(&points, job.stop));
    let store = with_leases(points.store(job.address.open().await), LeasePoints::Given);
    let model = points.model(model(job.scenario, true));
    let tools = tools(&job.starts).map(|tool| points.tool(tool));
    let client = client(model, tools, (memory(store), job.memory));
    let said = |turn: &str| client.prompt().user(job.said.as_str()).turn(TurnId::new(turn).unwrap());
    let prompt = if job.scenario == Scenario::Approved {
        let asks = format!("{}-asks", job.turn);
        let asked = said(&asks).conversation(job.conversation.as_str());
        let asked = read(&asks, asked.stream(), &points, None).await.unwrap();
        let approved = approved(&client, &job.conversation, &asks, &asked).await;
        approved.map(|prompt| prompt.turn(TurnId::new(&job.turn).unwrap()))
    } else {
        Some(said(&job.turn).conversation(job.conversation.as_str()))
    };
    let (leaves_after, on_drop) = job.scenario.leaves().unzip();
    if let Some(prompt) = prompt {
        let turn = prompt.stream().with_on_drop(on_drop.unwrap_or_default());
        read(&job.turn, turn, &points, leaves_after).await;
    }
    match on_drop {
        Some(OnDrop::KeepPartial) => tell(&Report::Closed { turn: job.turn }),
        Some(OnDrop::FinishTurn) => tell(&Report::Finished { turn: job.turn }),
        _ => {}
    }
    points.pass("at the end").await.unwrap();
    let places = points.passed().iter().map(|place| format!("{place:?}")).collect();
    tell(&Report::Over { places });
}

/// Reads a turn to its end, or until its reader leaves after some pieces of text. Returns its answer.
async fn read(
    id: &str,
    turn: TurnStream,
    points: &AwaitPoints,
    leaves_after: Option<usize>,
) -> Option<ChatResponse> {
    let mut turn = turn.with_spawner(Spawner::tokio(Handle::current()));
    points.pass("before the first poll").await.unwrap();
    let (mut texts, mut answer) = (0, None);
    while leaves_after != Some(texts)
        && let Some(item) = turn.next().await
    {
        texts += usize::from(tell_item(id, &item));
        if let Ok(Chunk::Completed(response)) = item {
            answer = Some(response);
        }
        points.pass("the reader, after an item").await.unwrap();
    }
    let settled = turn.handle().settled();
    drop(turn);
    settled.await;
    answer
}

/// Reports an item; returns whether it is text.
pub(crate) fn tell_item(turn: &str, item: &Result<Chunk, Error>) -> bool {
    let turn = turn.to_owned();
    tell(&match item {
        Ok(Chunk::Delta { block, delta: BlockDelta::Text(text) }) => {
            tell(&Report::Shown { turn, round: block.round, text: text.to_string() });
            return true;
        }
        Ok(Chunk::RoundCompleted(response)) => Report::RoundEnded { turn, round: response.round() },
        Ok(Chunk::Completed(response)) => Report::Completed { turn, text: response.text() },
        Ok(_) => return false,
        Err(error) => Report::Failed { turn, kind: format!("{:?}", error.kind()) },
    });
    false
}

/// Reports the events since the last point at each point, and stops at the chosen one.
fn teller(
    points: &AwaitPoints,
    stop: Option<Stop>,
) -> impl Fn(usize, advisor_conformance::crash::AwaitPoint) + use<> {
    let (points, told) = (points.clone(), AtomicUsize::new(0));
    move |point, place| {
        let events = points.events();
        let new = events.iter().skip(told.swap(events.len(), Ordering::Relaxed));
        new.filter_map(report).for_each(|report| tell(&report));
        if let Some(stop) = stop.filter(|stop| stop.point == point) {
            tell(&Report::At { point, place: format!("{place:?}") });
            if stop.stands {
                stand();
            }
        }
    }
}

fn report(event: &Event) -> Option<Report> {
    match event {
        Event::Appended { entries, version, .. } => {
            let first = version.0 + 1 - u64::try_from(entries.len()).unwrap();
            let entry = |(seq, new): (u64, &advisor_chain::memory::store::NewEntry)| {
                let mut entry = Entry::new(seq, new.turn.clone(), new.kind.clone());
                entry.round = new.round;
                entry
            };
            Some(Report::Acknowledged((first..).zip(entries).map(entry).collect()))
        }
        Event::Asked { messages, .. } => Some(Report::Asked(messages.iter().cloned().collect())),
        _ => None,
    }
}
