//! Processes that run turns in one conversation at the same time.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use advisor_testkit::{Around, Asked, StoreAround, Work};
use advisor_tests::prelude::*;
use serde::{Deserialize, Serialize};

use crate::processes::chain::{Scenario, Where, client, model, starts, tools};
use crate::processes::child::{Child, Report, begun_when_told, tell};
use crate::processes::conversation::block_on;
use crate::processes::places::{Address, Place};
use crate::processes::turn::tell_item;
use crate::processes::witness::Witness;
use crate::processes::{child, places};

/// Many turns, one after the other, each when the parent says so.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    address: Address,
    conversation: String,
    writer: usize,
    turns: usize,
    policy: Policy,
    memory: Where,
    starts: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Policy {
    Reject,
    Queue,
    Interrupt,
}

/// Whether all processes begin a turn together, or each begins when its turn before has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    InStep,
    Free,
}

const PROCESSES: usize = 3;
/// The default number of turns per process; `ADVISOR_RACING_TURNS` overrides it.
const TURNS: usize = 10;
/// Long enough that no slow process loses a conversation.
const LEASE: Duration = Duration::from_secs(60);

const NEVER_MET: &str = "no process met another one: they ran one after the other";

pub(crate) async fn run(job: Job) {
    let store = job.address.open().await;
    let policy = match job.policy {
        Policy::Reject => OnBusy::Reject,
        Policy::Queue => OnBusy::Queue,
        Policy::Interrupt => OnBusy::InterruptPrevious,
    };
    let store = StoreAround::with(store, TellsWhenHeld);
    let memory = ChatMemoryAdvisor::new(store).with_on_busy(policy).with_lease_ttl(LEASE);
    let model = model(Scenario::Rounds, false);
    let client = client(model.clone(), tools(&job.starts), (memory, job.memory));
    let mut asked = 0;
    tell(&Report::Ready);
    for nth in 0..job.turns {
        if !begun_when_told() {
            return;
        }
        let turn = format!("w{}-{nth}", job.writer);
        let prompt = client.prompt().user(format!("This is {turn}.")).conversation(job.conversation.as_str());
        let mut items = prompt.turn(TurnId::new(&turn).unwrap()).stream();
        while let Some(item) = items.next().await {
            let prompts = model.prompts();
            for prompt in prompts.iter().skip(asked) {
                tell(&Report::Asked(prompt.messages.iter().cloned().collect()));
            }
            asked = prompts.len();
            tell_item(&turn, &item);
        }
    }
    tell(&Report::Over { places: Vec::new() });
}

struct TellsWhenHeld;

#[async_trait]
impl Around for TellsWhenHeld {
    async fn around(&self, _: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        let done = work.await;
        if matches!(done, Err(StoreError::Locked { .. })) {
            tell(&Report::Held);
        }
        done
    }
}

#[test]
fn law_m1_m3_postgres_process_race_leaves_valid_conversation() {
    race_in("PostgreSQL", Place::postgres());
}

#[test]
fn law_m1_m3_redis_process_race_leaves_valid_conversation() {
    race_in("Redis", Place::redis());
}

fn race_in(what: &str, place: Option<Place>) {
    let Some(place) = place else { return };
    for policy in [Policy::Reject, Policy::Queue, Policy::Interrupt] {
        let mut met = 0;
        for pace in [Pace::InStep, Pace::Free] {
            for memory in Where::BOTH {
                let begin = Instant::now();
                let raced = Race::new(&place, policy, memory).run(pace);
                raced.tell(what, policy, pace, begin);
                raced.check(policy, pace);
                met += raced.met(pace);
            }
        }
        assert!(met > 0, "{policy:?}: {NEVER_MET}");
    }
    block_on(place.remove());
}

/// A file grants no leases. The process that writes first considers the other's turn dead, and the version
/// reveals this to the other process.
#[test]
fn law_m1_m3_file_process_race_leaves_valid_conversation() {
    let place = Place::file();
    let mut met = 0;
    for pace in [Pace::InStep, Pace::Free] {
        for memory in Where::BOTH {
            let begin = Instant::now();
            let raced = Race::new(&place, Policy::Reject, memory).run(pace);
            raced.tell("a file", Policy::Reject, pace, begin);
            let kinds: Vec<_> = raced.failed.keys().map(String::as_str).collect();
            assert!(kinds.iter().all(|kind| *kind == "StoreConflict"), "{kinds:?}");
            assert!(raced.completed > 0);
            met += raced.met(pace);
        }
    }
    assert!(met > 0, "{NEVER_MET}");
    block_on(place.remove());
}

struct Race<'a> {
    place: &'a Place,
    job: Job,
}

/// The result of a race, whose log was compared with all reports.
struct Raced {
    /// The number of all turns.
    turns: usize,
    completed: usize,
    /// The number of turns that found the conversation held by another turn.
    held: usize,
    /// The kinds of errors, and how often each came out.
    failed: BTreeMap<String, usize>,
    /// The lowest number of turns that were completed of those that began at one moment.
    least: usize,
    log: Vec<Entry>,
}

/// A child and its reports, which are read as they arrive, so that the child never waits for its reader.
struct Racer {
    child: Child,
    told: Receiver<Report>,
}

impl<'a> Race<'a> {
    fn new(place: &'a Place, policy: Policy, memory: Where) -> Self {
        let conversation = places::name();
        let starts = place.folder.path().join(format!("starts-{conversation}"));
        let address = place.address.clone();
        let turns = std::env::var("ADVISOR_RACING_TURNS").map_or(TURNS, |turns| turns.parse().unwrap());
        Self { place, job: Job { address, conversation, writer: 0, turns, policy, memory, starts } }
    }

    fn run(&self, pace: Pace) -> Raced {
        // The place is made before they come.
        block_on(self.place.address.open());
        let mut racers: Vec<_> = (0..PROCESSES)
            .map(|writer| Racer::begin(&child::Job::Race(Job { writer, ..self.job.clone() })))
            .collect();
        let mut witness = Witness::default();
        let (mut failed, mut held) = (BTreeMap::new(), 0);
        let mut least = PROCESSES;
        if pace == Pace::Free {
            racers.iter_mut().for_each(|racer| racer.child.go(self.job.turns));
        }
        for nth in 0..self.job.turns {
            if pace == Pace::InStep {
                // Another one is told first each time.
                (0..PROCESSES).for_each(|next| racers[(nth + next) % PROCESSES].child.go(1));
            }
            let before = witness.completed();
            for (writer, racer) in racers.iter().enumerate() {
                match racer.end_of_turn(writer, &mut witness, &mut held) {
                    Report::Failed { kind, .. } => *failed.entry(word(&kind)).or_default() += 1,
                    completed => witness.hear(writer, completed),
                }
            }
            least = least.min(witness.completed() - before);
        }
        for racer in &mut racers {
            assert!(matches!(racer.told.recv(), Ok(Report::Over { .. })));
            assert!(racer.child.ended_well());
        }
        let key = ConversationKey::new(&self.job.conversation).unwrap();
        let log = block_on(async {
            self.place.address.open().await.load(&key, ReadRange::All).await.unwrap().entries
        });
        witness.check(&log, &starts(&self.job.starts));
        Raced { turns: PROCESSES * self.job.turns, completed: witness.completed(), held, failed, least, log }
    }
}

/// Returns the first word of a kind of error, without its details.
fn word(kind: &str) -> String {
    kind.split(' ').next().unwrap_or_default().to_owned()
}

impl Racer {
    /// A child that is ready.
    fn begin(job: &child::Job) -> Self {
        let mut child = Child::begin(job);
        let mut reports = child.take_reports();
        let (tell, told) = channel();
        std::thread::spawn(move || while reports.next().is_some_and(|report| tell.send(report).is_ok()) {});
        assert!(matches!(told.recv(), Ok(Report::Ready)));
        Self { child, told }
    }

    /// Waits until a turn has ended and gives how.
    fn end_of_turn(&self, writer: usize, witness: &mut Witness, held: &mut usize) -> Report {
        loop {
            match self.told.recv().expect("the child ends before its turns have") {
                report @ (Report::Completed { .. } | Report::Failed { .. }) => return report,
                Report::Held => *held += 1,
                report => witness.hear(writer, report),
            }
        }
    }
}

impl Raced {
    fn turns_in_log(&self) -> impl Iterator<Item = &TurnId> {
        self.log.chunk_by(|one, next| one.turn == next.turn).map(|turn| &turn[0].turn)
    }

    /// Returns the number of turns in the log whose predecessor is of another process.
    fn changes(&self) -> usize {
        let writers: Vec<_> =
            self.turns_in_log().map(|turn| turn.as_str().split_once('-').unwrap().0).collect();
        writers.windows(2).filter(|two| two[0] != two[1]).count()
    }

    /// Returns the number of conflicts in a race in step. Processes that ran one after another would violate no
    /// rule.
    fn met(&self, pace: Pace) -> usize {
        if pace == Pace::InStep { self.held + self.failed.values().sum::<usize>() } else { 0 }
    }

    fn tell(&self, what: &str, policy: Policy, pace: Pace, begin: Instant) {
        let say = format!(
            "{what}, {policy:?}, {pace:?}: {} turns of {PROCESSES} processes in the log, {} complete, \
             {} times of another process than the one before, errors {:?}; {:?}",
            self.turns_in_log().count(),
            self.completed,
            self.changes(),
            self.failed,
            begin.elapsed()
        );
        let _ = writeln!(std::io::stderr(), "{say}");
    }

    fn check(&self, policy: Policy, pace: Pace) {
        let kinds: Vec<_> = self.failed.keys().map(String::as_str).collect();
        let of_policy: &[&str] = match policy {
            Policy::Reject => &["ConversationBusy"],
            Policy::Queue => &[],
            Policy::Interrupt => &["Fenced"],
        };
        assert!(kinds.iter().all(|kind| of_policy.contains(kind)), "{policy:?}: {kinds:?}");
        let failed: usize = self.failed.values().sum();
        assert_eq!(self.completed + failed, self.turns);
        assert!(self.completed > 0, "{policy:?}: nobody came through");
        if policy != Policy::Interrupt {
            let is_cut = |entry: &&Entry| matches!(&entry.kind, EntryKind::TurnEnded(end) if !matches!(end, TurnEnd::Completed(_)));
            assert_eq!(self.log.iter().find(is_cut), None, "{policy:?}: nobody cuts another one off");
        }
        let least = if policy == Policy::Queue { PROCESSES } else { 1 };
        assert!(pace == Pace::Free || self.least >= least, "{policy:?}: {} complete", self.least);
    }
}
