//! A conversation that several processes run, one after the other: children first, then this one.

use std::fmt::Debug;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use advisor_chain::Prompt;
use advisor_chain::chain::TurnResponse;
use advisor_tests::prelude::*;

use crate::processes::chain::{LAST, Scenario, Where, approved, client, memory, model, starts, tools};
use crate::processes::child::{Child, Job, Report};
use crate::processes::places::Place;
use crate::processes::plan::Turn;
use crate::processes::turn::{self, Stop};
use crate::processes::witness::Witness;

/// The number of concurrent conversations. Most of them wait for a lease or for a disk.
const AT_A_TIME: usize = 4;

/// A conversation of several processes, and their reports about it.
pub(crate) struct Conversation<'a> {
    place: &'a Place,
    name: String,
    scenario: Scenario,
    memory: Where,
    pub(crate) witness: Witness,
}

impl<'a> Conversation<'a> {
    pub(crate) fn new(place: &'a Place, name: String, scenario: Scenario, memory: Where) -> Self {
        Self { place, name, scenario, memory, witness: Witness::default() }
    }

    /// Begins a turn in a new process.
    pub(crate) fn begin(&self, turn: usize, stop: Option<Stop>) -> Child {
        Child::begin(&Job::Turn(turn::Job {
            address: self.place.address.clone(),
            conversation: self.name.clone(),
            turn: format!("t{turn}"),
            said: said(turn),
            scenario: self.scenario,
            memory: self.memory,
            starts: self.starts(),
            stop,
        }))
    }

    /// Reads the reports of a child until it is at its point. Returns whether it is there; otherwise it has
    /// ended.
    pub(crate) fn hear_until_stopped(&mut self, process: usize, child: &mut Child) -> bool {
        loop {
            match child.next() {
                None => {
                    assert!(child.ended_well());
                    return false;
                }
                Some(Report::At { .. }) => return true,
                Some(report) => self.witness.hear(process, report),
            }
        }
    }

    /// Runs a turn in a new process and kills it. Returns the number of entries acknowledged at its point, or
    /// `None` if it had ended before the kill.
    pub(crate) fn kill(&mut self, process: usize, turn: usize, stop: Stop) -> Option<usize> {
        let mut child = self.begin(turn, Some(stop));
        if !self.hear_until_stopped(process, &mut child) {
            return None;
        }
        let acknowledged = self.witness.acknowledged();
        let reached = Instant::now();
        while reached.elapsed() < stop.after {
            std::hint::spin_loop();
        }
        let killed = child.kill();
        // It may have told more before it was killed.
        while let Some(report) = child.next() {
            self.witness.hear(process, report);
        }
        killed.then_some(acknowledged)
    }

    fn starts(&self) -> PathBuf {
        self.place.folder.path().join(format!("starts-{}", self.name))
    }

    /// Opens the store again and compares its content with the reports. Returns the number of entries.
    pub(crate) async fn check(&self) -> usize {
        let store = self.place.address.open().await;
        let read = store.load(&self.key(), ReadRange::All).await.unwrap();
        assert_eq!(read.version.0, u64::try_from(read.entries.len()).unwrap());
        self.witness.check(&read.entries, &starts(&self.starts()));
        read.entries.len()
    }

    /// Continues in this process: with the turn `again`, submitted once more, and then with another one.
    pub(crate) async fn go_on(&mut self, process: usize, again: Option<usize>) {
        let store = self.place.address.open().await;
        let model = model(self.scenario, false);
        let memory = (memory(store), self.memory);
        let client = client(model.clone(), tools(&self.starts()), memory);
        let last = (String::from("last"), LAST.to_owned());
        let again = again.map(|turn| (format!("t{turn}"), said(turn)));
        for (id, said) in again.into_iter().chain([last]) {
            let prompt = |said: &str| client.prompt().user(said).conversation(self.name.as_str());
            let prompt = if self.scenario == Scenario::Approved && said != LAST {
                let asks = format!("{id}-asks");
                let asked = answer(prompt(&said), &asks).await;
                approved(&client, &self.name, &asks, &asked).await
            } else {
                Some(prompt(&said))
            };
            let Some(prompt) = prompt else { continue };
            let completed = Report::Completed { text: answer(prompt, &id).await.text(), turn: id };
            self.witness.hear(process, completed);
        }
        for prompt in model.prompts() {
            self.witness.hear(process, Report::Asked(prompt.messages.iter().cloned().collect()));
        }
        drop(client);
        self.check().await;
    }

    fn key(&self) -> ConversationKey {
        ConversationKey::new(&self.name).unwrap()
    }
}

async fn answer(prompt: Prompt, turn: &str) -> TurnResponse {
    let answered = prompt.turn(TurnId::new(turn).unwrap()).call().await;
    answered.unwrap_or_else(|error| panic!("{turn}: {error:?}"))
}

fn said(turn: usize) -> String {
    format!("This is {turn}.")
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}

/// Returns the points of every scenario, with memory in both places and without a kill.
pub(crate) fn every_turn(place: &Place) -> Vec<Turn> {
    let both = Scenario::ALL.into_iter().flat_map(|scenario| Where::BOTH.map(|memory| (scenario, memory)));
    both.map(|(scenario, memory)| points(place, scenario, memory)).collect()
}

/// Returns the points of a turn without a kill, and checks its reports.
pub(crate) fn points(place: &Place, scenario: Scenario, memory: Where) -> Turn {
    let name = format!("all-{scenario:?}-{memory:?}");
    let mut conversation = Conversation::new(place, name, scenario, memory);
    let mut child = conversation.begin(0, None);
    let mut places = None;
    while let Some(report) = child.next() {
        match report {
            Report::Over { places: all } => places = Some(all),
            report => conversation.witness.hear(0, report),
        }
    }
    assert!(child.ended_well());
    block_on(conversation.check());
    Turn { scenario, memory, places: places.unwrap() }
}

/// Works on all of these, a few at a time. A failure names its item.
pub(crate) fn side_by_side<T: Sync + Debug>(all: &[T], work: impl Fn(usize, &T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(nth) else { return };
                    let failed = Failed(one);
                    work(nth, one);
                    drop(failed);
                }
            });
        }
    });
}

/// Names the running item when it fails.
struct Failed<'a, T: Debug>(&'a T);

impl<T: Debug> Drop for Failed<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "failed: {:?}", self.0);
        }
    }
}
