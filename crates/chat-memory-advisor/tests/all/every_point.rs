//! Tests that drop a turn at every await point, and the next turn at every one of its await points. The process
//! continues or crashes. The turn after that always sends a valid transcript.

use std::task::Poll;

use advisor_core::{FinishReason, Phase, TurnStream};
use advisor_testkit::{Answer, ScriptedModel};
use chat_memory_advisor::ChatMemoryAdvisor;
use futures::StreamExt;
use tokio::task::yield_now;

use crate::store::{TestStore, Watched, test_store};
use crate::support::{Rounds, ask, builder, key, log_words, sent, turn};

fn answers() -> [Answer; 2] {
    let calls =
        Answer::new().text("Look").wait(yield_now()).text("ing").call("1", "f", "{}").call("2", "f", "{}");
    let done = Answer::new().text("do").wait(yield_now()).text("ne");
    [calls.finish(FinishReason::ToolCalls), done.finish(FinishReason::Stop)]
}

struct World {
    store: TestStore,
    memory: ChatMemoryAdvisor,
    place: Phase,
}

/// The progress of a turn.
struct Came {
    /// The text of the unfinished round that was shown.
    shown: String,
    ended: bool,
}

impl World {
    fn new(place: Phase) -> Self {
        let store = test_store();
        Self { memory: ChatMemoryAdvisor::new(store.clone()), store, place }
    }

    /// Polls a turn `polls` times, then drops it.
    async fn turn(&self, user: &str, polls: usize) -> Came {
        let model = ScriptedModel::new(answers());
        let client = builder(&self.memory, self.place, &model).advisor(Rounds::default()).build().unwrap();
        poll(turn(&client, user), polls).await
    }

    fn crash(&mut self) {
        self.memory = ChatMemoryAdvisor::new(self.store.clone());
    }

    /// Runs another turn to its end and returns its request, which is valid.
    async fn next_request(&self) -> String {
        let model = ScriptedModel::new([Answer::from_text("fine")]);
        let client = builder(&self.memory, self.place, &model).advisor(Rounds::default()).build().unwrap();
        ask(&client, "next").await.unwrap();
        let log = self.store.log(&key()).await;
        assert!(log.iter().map(|entry| entry.seq).eq(1..=log.len() as u64));
        sent(&model, 0)
    }
}

async fn poll(mut turn: TurnStream, polls: usize) -> Came {
    let mut came = Came { shown: String::new(), ended: false };
    for _ in 0..polls {
        match futures::poll!(turn.next()) {
            // The runtime allows a task only so much before it waits.
            Poll::Pending => yield_now().await,
            Poll::Ready(None) => came.ended = true,
            Poll::Ready(Some(chunk)) => match chunk.unwrap() {
                advisor_core::Chunk::RoundCompleted(_) | advisor_core::Chunk::Completed(_) => {
                    came.shown.clear()
                }
                chunk => came.shown.push_str(chunk.text().unwrap_or_default()),
            },
        }
    }
    came
}

/// Returns the number of polls of a whole turn.
async fn polls_of_a_turn(place: Phase) -> usize {
    for polls in 0.. {
        if World::new(place).turn("go", polls).await.ended {
            return polls;
        }
    }
    unreachable!("a turn ends")
}

#[tokio::test]
async fn law_k2_dropped_turn_leaves_state_before_or_after_point() {
    let states =
        ["", "u:go", "u:go a(1,2)Looking", "u:go a(1,2)Looking r1 r2", "u:go a(1,2)Looking r1 r2 a:done ."];
    for place in [Phase::Round, Phase::Turn] {
        let mut reached = 0;
        for polls in 0..=polls_of_a_turn(place).await {
            let world = World::new(place);
            world.turn("go", polls).await;
            let log = log_words(&world.store.log(&key()).await);
            let state =
                states.iter().position(|state| *state == log).unwrap_or_else(|| panic!("{polls}: {log}"));
            assert!(state == reached || state == reached + 1, "{polls}: {log}");
            reached = state;
        }
        assert_eq!(reached, states.len() - 1);
    }
}

#[tokio::test]
async fn law_k3_dropped_turn_remembers_exactly_shown_text() {
    for place in [Phase::Round, Phase::Turn] {
        for crashes in [false, true] {
            for polls in 0..=polls_of_a_turn(place).await {
                let mut world = World::new(place);
                let came = world.turn("go", polls).await;
                if crashes {
                    world.crash();
                }
                let request = world.next_request().await;
                let case = format!("{place:?} {polls} crash {crashes}: {request}");
                let stored = ["a(1,2)Looking", "a:done"].iter().any(|answer| request.contains(&answer[..]));
                if came.shown.is_empty() || crashes {
                    assert!(came.shown.is_empty() || stored || request.contains("a:[interrupted]"), "{case}");
                } else {
                    let cut = format!("a:{} [interrupted]", came.shown);
                    let whole = "a(1,2)Looking r1! r2! a:[interrupted]";
                    let kept = [cut.as_str(), whole, &whole.replace('!', ""), "a:done u:next"];
                    let times = kept.iter().filter(|kept| request.contains(**kept)).count();
                    assert_eq!(times, 1, "told once: {case}");
                }
                assert!(request.matches("Look").count() <= 1, "{case}");
            }
        }
    }
}

#[tokio::test]
async fn law_k4_next_turn_works_after_two_drops_or_crashes() {
    let mut pairs = 0;
    for place in [Phase::Round, Phase::Turn] {
        let longest = polls_of_a_turn(place).await;
        for crashes in 0..4 {
            for first in 0..=longest {
                for second in 0..=longest + 4 {
                    let mut world = World::new(place);
                    world.turn("one", first).await;
                    if crashes & 1 != 0 {
                        world.crash();
                    }
                    world.turn("two", second).await;
                    if crashes & 2 != 0 {
                        world.crash();
                    }
                    let request = world.next_request().await;
                    assert!(request.ends_with("u:next"), "{place:?} {crashes} {first} {second}: {request}");
                    pairs += 1;
                }
            }
        }
    }
    assert!(pairs > 5_000, "{pairs} pairs");
}
