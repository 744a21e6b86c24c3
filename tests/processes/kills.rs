//! Processes that are killed at every point of a turn, by SIGKILL.

use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use advisor_chain::{ConversationKey, View};

use crate::chain::{LAST, Scenario, Where, client, memory, model, starts, tools};
use crate::child::{Child, Job, Report};
use crate::places::Place;
use crate::plan::{Case, Turn, cases};
use crate::turn;
use crate::witness::Witness;

/// How many processes are killed per place, unless `ADVISOR_KILLS` says otherwise.
const KILLS: usize = 200;
/// How many conversations go at a time. Most of them wait for a lease or for a disk.
const AT_A_TIME: usize = 4;

#[test]
fn law_k4_m1_m3_m6_o6_t5_killed_at_any_point_a_conversation_in_a_file_goes_on() {
    killed_at_every_point("a file", Some(Place::file()));
}

#[test]
fn law_k4_m1_m3_m6_o6_t5_killed_at_any_point_a_conversation_in_postgres_goes_on() {
    killed_at_every_point("PostgreSQL", Place::postgres());
}

#[test]
fn law_k4_m1_m3_m6_o6_t5_killed_at_any_point_a_conversation_in_redis_goes_on() {
    killed_at_every_point("Redis", Place::redis());
}

fn killed_at_every_point(what: &str, place: Option<Place>) {
    let Some(place) = place else { return };
    let begin = Instant::now();
    let wanted = std::env::var("ADVISOR_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let both = Scenario::ALL.into_iter().flat_map(|scenario| Where::BOTH.map(|memory| (scenario, memory)));
    let turns: Vec<_> = both.map(|(scenario, memory)| places(&place, scenario, memory)).collect();
    let cases = cases(&turns, wanted);
    let (next, count) = (AtomicUsize::new(0), Count::default());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let nth = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(case) = cases.get(nth)
                {
                    Conversation::new(&place, nth, case).run(&count);
                }
            });
        }
    });
    let points: usize = turns.iter().map(|turn| turn.places.len()).sum();
    let say = format!(
        "{what}: {count} in {} conversations; {} turns have {points} points; {:?}",
        cases.len(),
        turns.len(),
        begin.elapsed()
    );
    let _ = writeln!(std::io::stderr(), "{say}");
    let kills = count.kills.into_inner();
    assert!(kills * 10 >= wanted * 9, "{kills} kills of {wanted}");
    block_on(place.remove());
}

/// The points of a turn that nobody kills.
fn places(place: &Place, scenario: Scenario, memory: Where) -> Turn {
    let case = Case { scenario, memory, kills: Vec::new(), resumes: false };
    let name = format!("all-{scenario:?}-{memory:?}");
    let conversation = Conversation { place, name, case: &case, witness: Witness::default() };
    let mut child = Child::begin(&Job::Turn(conversation.job(0, None)));
    let mut places = None;
    while let Some(report) = child.next() {
        if let Report::Over { places: all } = report {
            places = Some(all);
        }
    }
    assert!(child.ended_well());
    Turn { scenario, memory, places: places.unwrap() }
}

/// How many were killed.
#[derive(Default)]
struct Count {
    kills: AtomicUsize,
    /// Of those, the ones that were killed while they went on.
    in_flight: AtomicUsize,
    /// Of those, the ones whose last append was made, and nobody knew it.
    unknown: AtomicUsize,
}

impl Count {
    fn kill(&self, stop: turn::Stop, acknowledged: usize, stored: usize) {
        self.kills.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(usize::from(!stop.stands), Ordering::Relaxed);
        let is_unknown = !stop.stands && stored > acknowledged;
        self.unknown.fetch_add(usize::from(is_unknown), Ordering::Relaxed);
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [kills, in_flight, unknown] =
            [&self.kills, &self.in_flight, &self.unknown].map(|count| count.load(Ordering::Relaxed));
        write!(f, "{kills} processes were killed ({in_flight} while they appended, of which {unknown} had")?;
        write!(f, " appended and not been told)")
    }
}

/// A conversation that is killed as a case says.
struct Conversation<'a> {
    place: &'a Place,
    name: String,
    case: &'a Case,
    witness: Witness,
}

impl<'a> Conversation<'a> {
    fn new(place: &'a Place, nth: usize, case: &'a Case) -> Self {
        Self { place, name: format!("c{nth}"), case, witness: Witness::default() }
    }

    fn run(mut self, count: &Count) {
        let failed = Failed(format!("{}: {:?}", self.name, self.case));
        let mut turn = 0;
        for (process, kill) in self.case.kills.iter().enumerate() {
            turn += usize::from(process > 0 && !kill.again);
            let job = self.job(turn, Some(kill.stop));
            let killed = self.run_child(process, job);
            let log = block_on(self.check());
            if killed {
                count.kill(kill.stop, self.witness.acknowledged(), log);
            }
        }
        block_on(self.go_on(turn));
        drop(failed);
    }

    fn job(&self, turn: usize, stop: Option<turn::Stop>) -> turn::Job {
        turn::Job {
            address: self.place.address.clone(),
            conversation: self.name.clone(),
            turn: format!("t{turn}"),
            said: said(turn),
            scenario: self.case.scenario,
            memory: self.case.memory,
            starts: self.starts(),
            stop,
        }
    }

    fn starts(&self) -> std::path::PathBuf {
        self.place.folder.path().join(format!("starts-{}", self.name))
    }

    /// Runs a turn in a process of its own. Gives whether it was killed; else it had come to its end before.
    fn run_child(&mut self, process: usize, job: turn::Job) -> bool {
        let mut child = Child::begin(&Job::Turn(job));
        loop {
            match child.next() {
                None => {
                    assert!(child.ended_well());
                    return false;
                }
                Some(Report::At { .. }) => break,
                Some(report) => self.witness.hear(process, report),
            }
        }
        let killed = child.kill();
        // It may have told more before it was killed.
        while let Some(report) = child.next() {
            self.witness.hear(process, report);
        }
        killed
    }

    /// Opens the store anew and compares what is in it with what was told. Gives the number of entries.
    async fn check(&self) -> usize {
        let store = self.place.address.open().await;
        let read = store.load(&self.key(), View::All).await.unwrap();
        assert_eq!(read.version.as_u64(), u64::try_from(read.entries.len()).unwrap());
        self.witness.check(&read.entries, &starts(&self.starts()));
        read.entries.len()
    }

    /// A new process, this one, goes on: with the same turn if the case says so, and with another one.
    async fn go_on(&mut self, turn: usize) {
        let store = self.place.address.open().await;
        let model = model(self.case.scenario, false);
        let memory = (memory(store), self.case.memory);
        let client = client(model.clone(), tools(&self.starts()), memory);
        let (here, last) = (self.case.kills.len(), (String::from("last"), LAST.to_owned()));
        let again = self.case.resumes.then(|| (format!("t{turn}"), said(turn)));
        for (id, said) in again.into_iter().chain([last]) {
            let id = advisor_chain::TurnId::new(&id).unwrap();
            let prompt = client.prompt().user(said).conversation(self.name.as_str()).turn(id.clone());
            let answered = prompt.call().await.unwrap_or_else(|error| panic!("{id}: {error:?}"));
            let completed = Report::Completed { turn: id.to_string(), text: answered.text() };
            self.witness.hear(here, completed);
        }
        for prompt in model.prompts() {
            self.witness.hear(here, Report::Asked(prompt.messages.iter().cloned().collect()));
        }
        drop(client);
        self.check().await;
    }

    fn key(&self) -> ConversationKey {
        ConversationKey::new(&self.name).unwrap()
    }
}

fn said(turn: usize) -> String {
    format!("This is {turn}.")
}

/// Says what was going on when something fails.
struct Failed(String);

impl Drop for Failed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "failed: {}", self.0);
        }
    }
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}
