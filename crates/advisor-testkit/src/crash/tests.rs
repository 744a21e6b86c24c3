use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use advisor_core::{
    AdvisorChain, CallKey, ChatRequest, ChatResponse, Chunk, FinishReason, Message, MessageList, OnDrop,
    Phase, StreamAdvisor, ToolSet, TurnEnd, TurnId, from_fn,
};
use conversation_store::{BatchKey, EntryKind, InMemoryStore, NewEntry, Version};

use super::*;

fn driver(scenario: Scenario) -> CrashDriver {
    CrashDriver::new(scenario, InMemoryStore::new(), |leaves: &Leaves| {
        leaves.client().advisor(leaves.memory()).advisor(leaves.tool_loop().build()?).build()
    })
}

async fn ran(scenario: Scenario, strikes: &[Strike]) -> Ran {
    driver(scenario).run(&[strikes]).await.unwrap()
}

/// Changes the first event that satisfies `is_it`, or removes it.
fn change(ran: &mut Ran, is_it: fn(&Happened) -> bool, changed: impl FnOnce(Happened) -> Option<Happened>) {
    let events = ran.turns.iter_mut().map(|turn| &mut turn.happened).find(|events| events.iter().any(is_it));
    let events = events.unwrap();
    let place = events.iter().position(is_it).unwrap();
    let event = events.remove(place);
    if let Some(event) = changed(event) {
        events.insert(place, event);
    }
}

fn is_asked(happened: &Happened) -> bool {
    matches!(happened, Happened::Asked { .. })
}

fn is_appended(happened: &Happened) -> bool {
    matches!(happened, Happened::Appended { .. })
}

fn append_of(step: &'static str) -> impl Fn(&Happened) -> bool {
    move |happened| matches!(happened, Happened::Appended { key, .. } if &*key.step == step)
}

/// Removes the events of appends under this step.
fn forget_append(ran: &mut Ran, step: &'static str) {
    for turn in &mut ran.turns {
        let is_it = append_of(step);
        turn.happened.retain(|happened| !is_it(happened));
    }
}

fn ask_with(ran: &mut Ran, change_messages: fn(Vec<Message>) -> Vec<Message>) {
    change(ran, is_asked, |asked| match asked {
        Happened::Asked { turn, round, messages, tools } => {
            let messages = change_messages(messages.iter().cloned().collect());
            Some(Happened::Asked { turn, round, messages: messages.into_iter().collect(), tools })
        }
        other => Some(other),
    });
}

fn again(ran: &mut Ran, is_it: fn(&Happened) -> bool) {
    let events = &mut ran.turns[0].happened;
    let place = events.iter().position(is_it).unwrap();
    let event = events[place].clone();
    events.insert(place, event);
}

/// Breaks an invariant in a case of two whole turns.
fn spoil(invariant: Invariant, ran: &mut Ran) {
    match invariant {
        Invariant::RequestsAreValid => ask_with(ran, |mut messages| {
            messages.push(Message::user("again"));
            messages
        }),
        Invariant::MemoryIsThePrompt => ask_with(ran, |_| vec![Message::user("something else")]),
        Invariant::LogIsWhatWasAppended => {
            ran.turns[0].log.pop();
        }
        Invariant::TurnsStandTogether => {
            let strayed = ran.log.remove(1);
            ran.log.push(strayed);
        }
        Invariant::RepairingAgainChangesNothing => {
            // A user message that occurs twice in one turn stays twice.
            let said = ran.turns[0].log[0].clone();
            ran.turns[0].log.insert(0, said);
        }
        Invariant::InputComesFirst => forget_append(ran, "input"),
        Invariant::AnswersPrecedeTools => forget_append(ran, "answer"),
        Invariant::ResultsPrecedeRequests => forget_append(ran, "results"),
        Invariant::FailuresEndTheTurn => {
            let place = Place::Hook("loop_start");
            let struck = Happened::Struck { point: 1, place, mishap: Mishap::Fail };
            ran.turns[0].happened.insert(0, struck);
        }
        Invariant::TheEndComesLast => {
            let last =
                ran.turns[0].happened.iter().find(|happened| matches!(happened, Happened::Delivered(_)));
            let last = last.unwrap().clone();
            ran.turns[0].happened.push(last);
        }
        Invariant::ToolsRunOnce => again(ran, |happened| matches!(happened, Happened::ToolEffect(_))),
        Invariant::LoopsEndOnce => again(ran, |happened| matches!(happened, Happened::LoopEnded)),
        Invariant::NothingIsLeft => ran.turns[0].happened.push(Happened::Left(1)),
        Invariant::ShownIsRemembered => {
            ran.log
                .retain(|entry| entry.kind.as_message().is_none_or(|message| message.text() != "All done."));
        }
        Invariant::UndoneIsHidden => {
            let mishap = Mishap::Drop(OnDrop::Rollback);
            ran.turns[0].happened.push(Happened::Struck { point: 0, place: Place::Reader, mishap });
            ran.turns[0].over = Over::Dropped;
        }
        Invariant::TheLastTurnWorks => ran.turns.last_mut().unwrap().over = Over::Dropped,
        Invariant::TheLastTurnIsUnchanged => {
            ran.alone.pop_if(|last| matches!(last.kind, EntryKind::TurnEnded(_)));
            ran.alone.pop();
        }
    }
}

#[tokio::test]
async fn every_invariant_accepts_whole_turns_and_detects_violation() {
    let whole = ran(Scenario::ROUND, &[]).await;
    whole.check(&[]).unwrap();
    for invariant in Invariant::ALL {
        let mut spoilt = whole.clone();
        spoil(invariant, &mut spoilt);
        assert!(invariant.check(&spoilt).is_err(), "{invariant:?} holds of {spoilt}");
    }
}

/// Otherwise a cache would answer one case from another, and the memory of a process would outlive it.
#[tokio::test]
async fn d9_each_process_of_case_has_own_client() {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&made);
    let mut driver = CrashDriver::new(Scenario::PLAIN, InMemoryStore::new(), move |leaves: &Leaves| {
        counted.fetch_add(1, Ordering::Relaxed);
        leaves.client().advisor(leaves.memory()).advisor(leaves.tool_loop().build()?).build()
    });
    let kill = [Strike::new(0, Mishap::Kill)];
    // Before the first case, the last turn runs alone.
    for (case, processes) in [(&[&[][..]][..], 2), (&[&[]], 1), (&[&kill], 2), (&[&kill, &kill], 3)] {
        driver.run(case).await.unwrap().check(&[]).unwrap();
        assert_eq!(made.swap(0, Ordering::Relaxed), processes, "{case:?}");
    }
}

/// Inserts events between the failure of a turn's answer and its end.
async fn after_a_failed_answer(events: &[Happened]) -> Result<(), String> {
    let places = driver(Scenario::PLAIN).places().await;
    let model = places.iter().position(|place| *place == Place::ModelItem).unwrap();
    let mut ran = ran(Scenario::PLAIN, &[Strike::new(model, Mishap::Fail)]).await;
    ran.check(&[]).unwrap();
    let happened = &mut ran.turns[0].happened;
    let failed = happened.iter().position(|happened| matches!(happened, Happened::AnswerFailed { round: 1 }));
    let after = failed.unwrap() + 1..failed.unwrap() + 1;
    happened.splice(after, events.iter().cloned());
    Invariant::FailuresEndTheTurn.check(&ran)
}

#[tokio::test]
async fn failed_answer_counts_only_after_another_answer() {
    let answer = |round| ChatResponse::new(round, Message::assistant("Yes."), FinishReason::Stop);
    let ended = |round| Happened::RoundEnded(answer(round));
    let asked = Happened::Asked {
        turn: TurnId::mint(),
        round: 1,
        messages: MessageList::new(),
        tools: ToolSet::new(),
    };
    let tool =
        Happened::ToolStarted { key: CallKey::new(TurnId::mint(), 1, 0), call_id: "c".into(), effect: None };
    let completed = Happened::Delivered(Chunk::Completed(answer(2)));
    for right in [
        vec![],
        vec![asked.clone(), ended(1), completed.clone()],
        vec![ended(2), completed.clone()],
        vec![ended(2), tool.clone(), Happened::RoundStarted],
        vec![Happened::LoopEnded, Happened::LoopStarted, Happened::RoundStarted, asked.clone()],
    ] {
        after_a_failed_answer(&right).await.unwrap();
    }
    for wrong in [
        vec![ended(1)],
        vec![tool],
        vec![completed.clone()],
        vec![Happened::LoopEnded, completed],
        vec![Happened::RoundStarted, asked.clone()],
        vec![Happened::LoopStarted, Happened::RoundStarted, asked],
    ] {
        after_a_failed_answer(&wrong).await.unwrap_err();
    }
}

#[tokio::test]
async fn each_loop_of_a_turn_ends_once() {
    let mut ran = ran(Scenario::PLAIN, &[]).await;
    for (loops, holds) in [
        ("", true),
        ("SE", true),
        ("E", true),
        ("SESE", true),
        ("S", false),
        ("SEE", false),
        ("SSE", false),
        ("SES", false),
        ("SSEE", false),
        ("EE", false),
        ("ESE", false),
    ] {
        let event = |which| if which == 'S' { Happened::LoopStarted } else { Happened::LoopEnded };
        ran.turns[0].happened = loops.chars().map(event).collect();
        assert_eq!(Invariant::LoopsEndOnce.check(&ran).is_ok(), holds, "{loops}");
    }
}

#[tokio::test]
async fn skipped_version_is_detected() {
    let mut ran = ran(Scenario::PLAIN, &[]).await;
    change(&mut ran, is_appended, |appended| match appended {
        Happened::Appended { key, entries, .. } => {
            Some(Happened::Appended { key, entries, version: Version::new(9) })
        }
        other => Some(other),
    });
    let broken = ran.check(&[]).unwrap_err();
    assert_eq!(broken.invariant(), Invariant::LogIsWhatWasAppended);
    assert!(broken.problem().contains("version 9 instead of 1"), "{}", broken.problem());
}

#[tokio::test]
async fn tool_start_not_stored_first_is_detected() {
    let mut ran = ran(Scenario::ONCE, &[]).await;
    ran.check(&[]).unwrap();
    let is_start = |entry: &NewEntry| matches!(entry.kind, EntryKind::CallStarted(_));
    ran.turns[0].happened.retain(|happened| !ran::appended(happened).iter().any(is_start));
    let found = Invariant::ToolsRunOnce.check(&ran).unwrap_err();
    assert!(found.ends_with("starts before its start is stored"), "{found}");
}

#[tokio::test]
async fn completion_before_stored_end_is_detected() {
    let mut ran = ran(Scenario::PLAIN, &[]).await;
    let events = &mut ran.turns[0].happened;
    let is_end = append_of("answer");
    let end = events.iter().position(is_end).unwrap();
    let end = events.remove(end);
    let completed =
        events.iter().position(|happened| matches!(happened, Happened::Delivered(Chunk::Completed(_))));
    events.insert(completed.unwrap() + 1, end);
    assert_eq!(ran.check(&[]).unwrap_err().invariant(), Invariant::TheEndComesLast);
}

/// The partial text of a dropped turn is missing, or another one, or repeated.
#[tokio::test]
async fn a_partial_text_is_that_which_was_shown() {
    let places = driver(Scenario::PLAIN).places().await;
    // The reader has received the beginning of a block and its first text.
    let readers = places.iter().enumerate().filter(|(_, place)| **place == Place::Reader);
    let shown = readers.map(|(point, _)| point).nth(1).unwrap();
    let ran = ran(Scenario::PLAIN, &[Strike::new(shown, Mishap::Drop(OnDrop::KeepPartial))]).await;
    ran.check(&[]).unwrap();
    let end = ran.log.iter().position(|entry| matches!(entry.kind, EntryKind::TurnEnded(_))).unwrap();
    let interrupted = |partial: &str| EntryKind::TurnEnded(TurnEnd::Interrupted { partial: partial.into() });
    assert_eq!(ran.log[end].kind, interrupted("All "));
    for (kind, problem) in [
        (interrupted(""), "remembered 0 times"),
        (interrupted("All done."), "remembered 0 times"),
        (EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop)), "remembered 0 times"),
    ] {
        let mut spoilt = ran.clone();
        spoilt.log[end].kind = kind;
        let found = Invariant::ShownIsRemembered.check(&spoilt).unwrap_err();
        assert!(found.contains(problem), "{found}");
    }
    let mut doubled = ran.clone();
    doubled.log[end].kind = EntryKind::Message(Message::assistant("All "));
    doubled.log.insert(end + 1, ran.log[end].clone());
    Invariant::ShownIsRemembered.check(&doubled).unwrap();
    let turn = doubled.turns[0].id.clone();
    let entries = vec![NewEntry::new(turn.clone(), doubled.log[end].kind.clone())];
    let key = BatchKey::new(turn, 1, "answer");
    doubled.turns[0].happened.push(Happened::Appended { key, entries, version: Version::new(2) });
    let found = Invariant::ShownIsRemembered.check(&doubled).unwrap_err();
    assert!(found.contains("remembered 2 times"), "{found}");
    let mut killed = ran.clone();
    killed.turns[0].over = Over::Killed;
    killed.log[end].kind = interrupted("");
    Invariant::ShownIsRemembered.check(&killed).unwrap();
    killed.log[end].kind = interrupted("Never");
    Invariant::ShownIsRemembered.check(&killed).unwrap_err();
}

#[tokio::test]
async fn every_mishap_happens_where_it_is_wanted() {
    let places = driver(Scenario::ROUND).places().await;
    for mishap in Mishap::ALL {
        let at: Vec<_> = (0..places.len()).filter(|point| mishap.can_happen_at(places[*point])).collect();
        assert!(!at.is_empty(), "{mishap:?}");
        let ran = ran(Scenario::ROUND, &[Strike::new(at[at.len() / 2], mishap)]).await;
        assert!(ran.all_struck(), "{ran}");
        let over = ran.turns[0].over;
        let expected = match mishap {
            Mishap::Drop(_) => over == Over::Dropped,
            Mishap::Kill => over == Over::Killed,
            Mishap::Cancel(_) => over == Over::Failed(advisor_core::ErrorKind::Cancelled),
            _ => true,
        };
        assert!(expected, "{mishap:?}: {over:?}");
    }
}

#[tokio::test]
async fn a_leaf_of_ones_own_is_struck_too() {
    let mut driver = CrashDriver::new(Scenario::PLAIN, InMemoryStore::new(), |leaves: &Leaves| {
        let points = leaves.points.clone();
        let timer = from_fn("timer", move |request: ChatRequest, next: AdvisorChain| {
            let points = points.clone();
            async move {
                points.pass("timer").await?;
                next.next_stream(request).await
            }
        });
        let client = leaves.client().advisor_in(Phase::ModelCall, timer);
        client.advisor(leaves.memory()).advisor(leaves.tool_loop().build()?).build()
    });
    let places = driver.places().await;
    let timer = places.iter().position(|place| *place == Place::Other("timer")).unwrap();
    let ran = driver.run(&[&[Strike::new(timer, Mishap::Fail)]]).await.unwrap();
    assert_eq!(ran.turns[0].over, Over::Failed(advisor_core::ErrorKind::Advisor));
    ran.check(&[]).unwrap();
}

#[tokio::test]
async fn what_goes_on_after_a_turn_is_found() {
    let points = AwaitPoints::new();
    points.begin(&[]);
    let left = points.alive();
    points.end();
    points.pass("late").await.unwrap();
    drop(left);
    let happened: Vec<_> = points.happened().iter().map(ToString::to_string).collect();
    assert_eq!(happened, ["1 parts of the turn are still there", "went on without a turn: late"]);
}

/// Creates a driver of a chain with this advisor as the outermost one.
fn driver_with<A: StreamAdvisor>(make: impl Fn(&AwaitPoints) -> A + Send + Sync + 'static) -> CrashDriver {
    CrashDriver::new(Scenario::PLAIN, InMemoryStore::new(), move |leaves: &Leaves| {
        let client = leaves.client().advisor_in(Phase::Turn, make(&leaves.points));
        client.advisor(leaves.memory()).advisor(leaves.tool_loop().build()?).build()
    })
}

#[tokio::test]
async fn work_that_a_turn_has_spawned_is_found() {
    let mut driver = driver_with(|points| {
        let points = points.clone();
        from_fn("spawns", move |request: ChatRequest, next: AdvisorChain| {
            let points = points.clone();
            async move {
                let stream = next.next_stream(request).await?;
                Ok(stream.on_completed(move |response| async move {
                    tokio::spawn(async move {
                        for _ in 0..3 {
                            tokio::task::yield_now().await;
                        }
                        points.pass("spawned").await
                    });
                    Ok(response)
                }))
            }
        })
    });
    let ran = driver.run(&[&[]]).await.unwrap();
    assert_eq!(ran.check(&[]).unwrap_err().invariant(), Invariant::NothingIsLeft);
    let is_late = |happened: &Happened| matches!(happened, Happened::Late(Place::Other("spawned")));
    for turn in &ran.turns {
        assert_eq!(turn.happened.iter().filter(|happened| is_late(happened)).count(), 1, "{ran}");
    }
}

#[tokio::test]
#[should_panic(expected = "the chain does not use `tool_loop()` of its leaves")]
async fn chain_with_own_tool_loop_is_detected() {
    let make = |leaves: &Leaves| {
        let own = tool_call_advisor::ToolCallAdvisor::builder().build()?;
        leaves.client().advisor(own).advisor(leaves.memory()).build()
    };
    every_point_of_chain(make, Scenario::PLAIN, &[]).await;
}

#[tokio::test]
#[should_panic(expected = "can happen at no point of this turn")]
async fn a_mishap_that_cannot_happen_is_found() {
    driver(Scenario::PLAIN).every_point(&[Mishap::Store(crate::StoreFault::HangBefore)]).await;
}

#[tokio::test(start_paused = true)]
async fn hanging_turn_is_detected_and_located() {
    let mut driver = driver_with(|_| {
        from_fn("hangs", |_: ChatRequest, _: AdvisorChain| async { std::future::pending().await })
    });
    let ran = driver.run(&[]).await.unwrap();
    assert_eq!(ran.turns[0].over, Over::Stuck);
    let broken = ran.check(&[]).unwrap_err();
    assert_eq!(broken.invariant(), Invariant::TheEndComesLast);
    assert!(broken.problem().contains("hangs after 1 points, the last of which is: before the first poll"));
    assert!(broken.to_string().contains("over: Stuck"), "{broken}");
}

#[tokio::test]
async fn watcher_sees_every_point_before_it_passes() {
    use std::sync::Mutex;

    let points = AwaitPoints::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let (telling, passed) = (Arc::clone(&told), points.clone());
    points.watch(move |point, place| {
        assert_eq!(passed.places().len(), point, "it is not passed yet");
        telling.lock().unwrap().push((point, place));
    });
    for name in ["one", "two", "three"] {
        points.pass(name).await.unwrap();
    }
    let places = ["one", "two", "three"].map(Place::Other);
    assert_eq!(*told.lock().unwrap(), (0..).zip(places).collect::<Vec<_>>());
    assert_eq!(points.places(), places);
}
