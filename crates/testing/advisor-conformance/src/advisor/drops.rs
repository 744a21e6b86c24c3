//! The clause that nothing is left of an answer that is dropped.

use futures::StreamExt;
use tokio::runtime::Handle;

use super::inside::{Inside, Work};
use super::reading::{Items, Reader, let_others_run, ready_items, within};
use super::script::{Cut, End, Pace, Script};
use super::subject::{Clause, Subject};
use advisor_testkit::Gate;

const STOPS: Clause = Clause {
    law: "law K2 or R2",
    rule: "after the end of an answer or its drop, the inner stream is dropped and nothing runs",
    remedy: "own the inner stream in the returned one and spawn nothing; put work of your own into `on_completed`",
};

/// An answer that is dropped leaves no stream, no task and no work: after each chunk, at each pause of the model, before
/// the answer begins, and while an inner advisor completes it. The same holds for an answer that is read to its end.
pub async fn law_k2_dropped_answer_leaves_nothing(subject: &Subject) {
    for script in Script::all(subject) {
        let deltas = script.deltas(Cut::Every(5));
        for reader in Reader::ALL {
            for pace in Pace::READY {
                let whole = || Inside::new(subject, script.whole(Cut::Every(5), pace));
                let count = whole().read(subject, reader).await.chunks.len();
                // The last time, the answer is read to its end.
                for chunks in 0..=count + 1 {
                    let inside = whole();
                    let mut items = inside.open(subject, reader);
                    for _ in 0..chunks {
                        within(subject, items.next()).await;
                    }
                    let when = format!("after {chunks} chunks of {}", script.name);
                    Dropped::new(subject, &inside, items).check(&when).await;
                }
            }
            for sent in (0..=deltas.len()).filter_map(|until| deltas.get(..until)) {
                let end = End::Waits(Gate::new());
                let inside = Inside::new(subject, script.answer(sent, Pace::OneByOne, &end));
                let mut items = inside.open(subject, reader);
                ready_items(&mut items).await;
                let when = format!("while the model waits after {} deltas of {}", sent.len(), script.name);
                Dropped::new(subject, &inside, items).check(&when).await;
            }
            drop_during_inner_work(subject, &script, reader).await;
            drop_before_the_answer(subject, &script, reader).await;
        }
    }
}

async fn drop_during_inner_work(subject: &Subject, script: &Script, reader: Reader) {
    let gate = Gate::new();
    let inside = Inside::new(subject, script.whole(Cut::Whole, Pace::AtOnce));
    let inside = inside.with_work(Work::Waits(gate.clone()));
    let mut items = inside.open(subject, reader);
    let ready = ready_items(&mut items).await;
    let has_ended = ready.iter().any(|item| !item.as_ref().is_ok_and(|chunk| chunk.completed().is_none()));
    let dropped = Dropped::new(subject, &inside, items);
    gate.release();
    if !has_ended {
        dropped.check(&format!("during inner completion work on {}", script.name)).await;
    }
}

async fn drop_before_the_answer(subject: &Subject, script: &Script, reader: Reader) {
    let gate = Gate::new();
    let inside = Inside::new(subject, script.whole(Cut::Whole, Pace::AtOnce)).with_opening(&gate);
    let mut items = inside.open(subject, reader);
    ready_items(&mut items).await;
    let_others_run().await;
    let dropped = Dropped::new(subject, &inside, items);
    gate.release();
    dropped.check(&format!("before the beginning of {}", script.name)).await;
}

/// An answer that was just dropped.
struct Dropped<'a> {
    subject: &'a Subject,
    inside: &'a Inside,
    /// The progress at the drop.
    then: Progress,
}

#[derive(Debug, PartialEq)]
struct Progress {
    requests: usize,
    chunks: usize,
    completed: usize,
}

impl Progress {
    fn of(inside: &Inside) -> Self {
        Self {
            requests: inside.prompts().len(),
            chunks: inside.seen().len(),
            completed: inside.journal().count("inner work ends *"),
        }
    }
}

impl<'a> Dropped<'a> {
    fn new(subject: &'a Subject, inside: &'a Inside, items: Items) -> Self {
        drop(items);
        Self { subject, inside, then: Progress::of(inside) }
    }

    async fn check(self, when: &str) {
        let_others_run().await;
        let Self { subject, inside, then } = self;
        let now = Progress::of(inside);
        subject.breaks_if(now != then, STOPS, || {
            format!("inside, {then:?} becomes {now:?} after the drop ({when})")
        });
        let tasks = Handle::current().metrics().num_alive_tasks();
        let streams = inside.live();
        subject.breaks_if(tasks > 0 || streams > 0, STOPS, || {
            format!("{streams} inner streams and {tasks} spawned tasks are left, dropped {when}")
        });
    }
}
