//! Tests of `crash`.

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

async fn run(scenario: Scenario, injections: &[Injection]) -> CaseRun {
    driver(scenario).run(&[injections]).await.unwrap()
}

/// Changes the first event that satisfies `is_it`, or removes it.
fn change(run: &mut CaseRun, is_it: fn(&Event) -> bool, changed: impl FnOnce(Event) -> Option<Event>) {
    let events = run.turns.iter_mut().map(|turn| &mut turn.events).find(|events| events.iter().any(is_it));
    let events = events.unwrap();
    let place = events.iter().position(is_it).unwrap();
    let event = events.remove(place);
    if let Some(event) = changed(event) {
        events.insert(place, event);
    }
}

fn is_asked(event: &Event) -> bool {
    matches!(event, Event::Asked { .. })
}

fn is_appended(event: &Event) -> bool {
    matches!(event, Event::Appended { .. })
}

fn append_of(step: &'static str) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::Appended { key, .. } if key.step.split('-').next() == Some(step))
}

/// Removes the events of appends under this step.
fn forget_append(run: &mut CaseRun, step: &'static str) {
    for turn in &mut run.turns {
        let is_it = append_of(step);
        turn.events.retain(|event| !is_it(event));
    }
}

fn ask_with(run: &mut CaseRun, change_messages: fn(Vec<Message>) -> Vec<Message>) {
    change(run, is_asked, |asked| match asked {
        Event::Asked { turn, round, messages, tools } => {
            let messages = change_messages(messages.iter().cloned().collect());
            Some(Event::Asked { turn, round, messages: messages.into_iter().collect(), tools })
        }
        other => Some(other),
    });
}

fn again(run: &mut CaseRun, is_it: fn(&Event) -> bool) {
    let events = &mut run.turns[0].events;
    let place = events.iter().position(is_it).unwrap();
    let event = events[place].clone();
    events.insert(place, event);
}

fn check(invariant: Invariant, run: &CaseRun) -> Result<(), String> {
    let (_, check) = invariants::INVARIANTS.into_iter().find(|(other, _)| *other == invariant).unwrap();
    check(run)
}

/// Breaks an invariant in a case of two whole turns.
fn spoil(invariant: Invariant, run: &mut CaseRun) {
    match invariant {
        Invariant::RequestsAreValid => ask_with(run, |mut messages| {
            messages.push(Message::user("again"));
            messages
        }),
        Invariant::MemoryIsThePrompt => ask_with(run, |_| vec![Message::user("something else")]),
        Invariant::LogIsWhatWasAppended => {
            run.turns[0].log.pop();
        }
        Invariant::TurnsStandTogether => {
            let strayed = run.log.remove(1);
            run.log.push(strayed);
        }
        Invariant::RepairingAgainChangesNothing => {
            // A user message that occurs twice in one turn stays twice.
            let said = run.turns[0].log[0].clone();
            run.turns[0].log.insert(0, said);
        }
        Invariant::InputComesFirst => forget_append(run, "input"),
        Invariant::AnswersPrecedeTools => forget_append(run, "answer"),
        Invariant::ResultsPrecedeRequests => forget_append(run, "results"),
        Invariant::FailuresEndTheTurn => {
            let await_point = AwaitPoint::Hook("loop_start");
            let injected = Event::Injected { point: 1, await_point, fault: Fault::Fail };
            run.turns[0].events.insert(0, injected);
        }
        Invariant::TheEndComesLast => {
            let last = run.turns[0].events.iter().find(|event| matches!(event, Event::Delivered(_)));
            let last = last.unwrap().clone();
            run.turns[0].events.push(last);
        }
        Invariant::ToolsRunOnce => again(run, |event| matches!(event, Event::ToolEffect(_))),
        Invariant::LoopsEndOnce => again(run, |event| matches!(event, Event::LoopEnded)),
        Invariant::NothingIsLeft => run.turns[0].events.push(Event::Leaked(1)),
        Invariant::ShownIsRemembered => {
            run.log
                .retain(|entry| entry.kind.as_message().is_none_or(|message| message.text() != "All done."));
        }
        Invariant::UndoneIsHidden => {
            let fault = Fault::Drop(OnDrop::Rollback);
            run.turns[0].events.push(Event::Injected { point: 0, await_point: AwaitPoint::Reader, fault });
            run.turns[0].outcome = Outcome::Dropped;
        }
        Invariant::TheLastTurnWorks => run.turns.last_mut().unwrap().outcome = Outcome::Dropped,
        Invariant::TheLastTurnIsUnchanged => {
            run.alone.pop_if(|last| matches!(last.kind, EntryKind::TurnEnded(_)));
            run.alone.pop();
        }
    }
}

#[tokio::test]
async fn every_invariant_accepts_whole_turns_and_detects_violation() {
    let whole = run(Scenario::ROUND, &[]).await;
    whole.check(&[]).unwrap();
    for (invariant, check) in invariants::INVARIANTS {
        let mut spoilt = whole.clone();
        spoil(invariant, &mut spoilt);
        assert!(check(&spoilt).is_err(), "{invariant:?} holds of {spoilt}");
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
    let kill = [Injection::new(0, Fault::Kill)];
    // Before the first case, the last turn runs alone.
    for (case, processes) in [(&[&[][..]][..], 2), (&[&[]], 1), (&[&kill], 2), (&[&kill, &kill], 3)] {
        driver.run(case).await.unwrap().check(&[]).unwrap();
        assert_eq!(made.swap(0, Ordering::Relaxed), processes, "{case:?}");
    }
}

/// Inserts events between the failure of a turn's answer and its end.
async fn after_a_failed_answer(events: &[Event]) -> Result<(), String> {
    let await_points = driver(Scenario::PLAIN).await_points().await;
    let model = await_points.iter().position(|await_point| *await_point == AwaitPoint::ModelItem).unwrap();
    let mut run = run(Scenario::PLAIN, &[Injection::new(model, Fault::Fail)]).await;
    run.check(&[]).unwrap();
    let after_failure = &mut run.turns[0].events;
    let failed = after_failure.iter().position(|event| matches!(event, Event::AnswerFailed { round: 1 }));
    let after = failed.unwrap() + 1..failed.unwrap() + 1;
    after_failure.splice(after, events.iter().cloned());
    check(Invariant::FailuresEndTheTurn, &run)
}

#[tokio::test]
async fn failed_answer_counts_only_after_another_answer() {
    let answer = |round| ChatResponse::new(round, Message::assistant("Yes."), FinishReason::Stop);
    let ended = |round| Event::RoundEnded(answer(round));
    let asked = Event::Asked {
        turn: TurnId::random(),
        round: 1,
        messages: MessageList::default(),
        tools: ToolSet::new(),
    };
    let tool =
        Event::ToolStarted { key: CallKey::new(TurnId::random(), 1, 0), call_id: "c".into(), effect: None };
    let completed = Event::Delivered(Chunk::Completed(answer(2)));
    for right in [
        vec![],
        vec![asked.clone(), ended(1), completed.clone()],
        vec![ended(2), completed.clone()],
        vec![ended(2), tool.clone(), Event::RoundStarted],
        vec![Event::LoopEnded, Event::LoopStarted, Event::RoundStarted, asked.clone()],
    ] {
        after_a_failed_answer(&right).await.unwrap();
    }
    for wrong in [
        vec![ended(1)],
        vec![tool],
        vec![completed.clone()],
        vec![Event::LoopEnded, completed],
        vec![Event::RoundStarted, asked.clone()],
        vec![Event::LoopStarted, Event::RoundStarted, asked],
    ] {
        after_a_failed_answer(&wrong).await.unwrap_err();
    }
}

#[tokio::test]
async fn each_loop_of_a_turn_ends_once() {
    let mut run = run(Scenario::PLAIN, &[]).await;
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
        let event = |which| if which == 'S' { Event::LoopStarted } else { Event::LoopEnded };
        run.turns[0].events = loops.chars().map(event).collect();
        assert_eq!(check(Invariant::LoopsEndOnce, &run).is_ok(), holds, "{loops}");
    }
}

#[tokio::test]
async fn skipped_version_is_detected() {
    let mut run = run(Scenario::PLAIN, &[]).await;
    change(&mut run, is_appended, |appended| match appended {
        Event::Appended { key, entries, .. } => Some(Event::Appended { key, entries, version: Version(9) }),
        other => Some(other),
    });
    let broken = run.check(&[]).unwrap_err();
    assert_eq!(broken.invariant, Invariant::LogIsWhatWasAppended);
    assert!(broken.problem.contains("version 9 instead of 1"), "{}", broken.problem);
}

#[tokio::test]
async fn tool_start_not_stored_first_is_detected() {
    let mut run = run(Scenario::ONCE, &[]).await;
    run.check(&[]).unwrap();
    let is_start = |entry: &NewEntry| matches!(entry.kind, EntryKind::CallStarted(_));
    run.turns[0].events.retain(|event| !case_run::appended(event).iter().any(is_start));
    let found = check(Invariant::ToolsRunOnce, &run).unwrap_err();
    assert!(found.ends_with("starts before its start is stored"), "{found}");
}

#[tokio::test]
async fn start_stored_after_tool_of_round_is_detected() {
    let mut run = run(Scenario::ONCE, &[]).await;
    let events = &mut run.turns[0].events;
    let is_start = |entry: &NewEntry| matches!(entry.kind, EntryKind::CallStarted(_));
    let append = events.iter().position(|event| case_run::appended(event).iter().any(is_start)).unwrap();
    let is_work = |event: &Event| matches!(event, Event::ToolStarted { key, .. } if key.position == 1);
    let work = events.iter().position(is_work).unwrap();
    let work = events.remove(work);
    events.insert(append, work);
    let found = check(Invariant::ToolsRunOnce, &run).unwrap_err();
    assert!(found.ends_with("is stored after a tool of its round has started"), "{found}");
    // A client-side call starts by itself.
    run.turns[0].events.retain(|event| !matches!(event, Event::LoopStarted));
    check(Invariant::ToolsRunOnce, &run).unwrap();
}

#[tokio::test]
async fn completion_before_stored_end_is_detected() {
    let mut run = run(Scenario::PLAIN, &[]).await;
    let events = &mut run.turns[0].events;
    let is_end = append_of("answer");
    let end = events.iter().position(is_end).unwrap();
    let end = events.remove(end);
    let completed = events.iter().position(|event| matches!(event, Event::Delivered(Chunk::Completed(_))));
    events.insert(completed.unwrap() + 1, end);
    assert_eq!(run.check(&[]).unwrap_err().invariant, Invariant::TheEndComesLast);
}

/// The partial text of a dropped turn is missing, or another one, or repeated.
#[tokio::test]
async fn a_partial_text_is_that_which_was_shown() {
    let await_points = driver(Scenario::PLAIN).await_points().await;
    // The reader has received the beginning of a block and its first text.
    let readers =
        await_points.iter().enumerate().filter(|(_, await_point)| **await_point == AwaitPoint::Reader);
    let shown = readers.map(|(point, _)| point).nth(1).unwrap();
    let run = run(Scenario::PLAIN, &[Injection::new(shown, Fault::Drop(OnDrop::KeepPartial))]).await;
    run.check(&[]).unwrap();
    let end = run.log.iter().position(|entry| matches!(entry.kind, EntryKind::TurnEnded(_))).unwrap();
    let interrupted = |partial: &str| EntryKind::TurnEnded(TurnEnd::Interrupted { partial: partial.into() });
    assert_eq!(run.log[end].kind, interrupted("All "));
    for (kind, problem) in [
        (interrupted(""), "remembered 0 times"),
        (interrupted("All done."), "remembered 0 times"),
        (EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop)), "remembered 0 times"),
    ] {
        let mut spoilt = run.clone();
        spoilt.log[end].kind = kind;
        let found = check(Invariant::ShownIsRemembered, &spoilt).unwrap_err();
        assert!(found.contains(problem), "{found}");
    }
    let mut doubled = run.clone();
    doubled.log[end].kind = EntryKind::Message(Message::assistant("All "));
    doubled.log.insert(end + 1, run.log[end].clone());
    check(Invariant::ShownIsRemembered, &doubled).unwrap();
    let turn = doubled.turns[0].id.clone();
    let entries = vec![NewEntry::new(turn.clone(), doubled.log[end].kind.clone())];
    let key = BatchKey::new(turn, 1, "answer");
    doubled.turns[0].events.push(Event::Appended { key, entries, version: Version(2) });
    let found = check(Invariant::ShownIsRemembered, &doubled).unwrap_err();
    assert!(found.contains("remembered 2 times"), "{found}");
    let mut killed = run.clone();
    killed.turns[0].outcome = Outcome::Killed;
    killed.log[end].kind = interrupted("");
    check(Invariant::ShownIsRemembered, &killed).unwrap();
    killed.log[end].kind = interrupted("Never");
    check(Invariant::ShownIsRemembered, &killed).unwrap_err();
}

#[tokio::test]
async fn every_fault_happens_where_it_is_injected() {
    let await_points = driver(Scenario::ROUND).await_points().await;
    for fault in Fault::ALL {
        let at: Vec<_> =
            (0..await_points.len()).filter(|point| fault.can_happen_at(await_points[*point])).collect();
        assert!(!at.is_empty(), "{fault:?}");
        let run = run(Scenario::ROUND, &[Injection::new(at[at.len() / 2], fault)]).await;
        assert!(run.all_injected(), "{run}");
        let outcome = run.turns[0].outcome;
        let expected = match fault {
            Fault::Drop(_) => outcome == Outcome::Dropped,
            Fault::Kill => outcome == Outcome::Killed,
            Fault::Cancel(_) => outcome == Outcome::Failed(advisor_core::ErrorKind::Cancelled),
            _ => true,
        };
        assert!(expected, "{fault:?}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_fault_is_injected_at_a_custom_leaf() {
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
    let await_points = driver.await_points().await;
    let timer =
        await_points.iter().position(|await_point| *await_point == AwaitPoint::Other("timer")).unwrap();
    let run = driver.run(&[&[Injection::new(timer, Fault::Fail)]]).await.unwrap();
    assert_eq!(run.turns[0].outcome, Outcome::Failed(advisor_core::ErrorKind::Advisor));
    run.check(&[]).unwrap();
}

#[tokio::test]
async fn work_after_a_turn_is_found() {
    let points = AwaitPoints::new();
    points.begin(&[]);
    let left = points.alive();
    points.end();
    points.pass("late").await.unwrap();
    drop(left);
    let events: Vec<_> = points.events().iter().map(ToString::to_string).collect();
    assert_eq!(events, ["Leaked(1)", "Late(Other(\"late\"))"]);
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
    let run = driver.run(&[&[]]).await.unwrap();
    assert_eq!(run.check(&[]).unwrap_err().invariant, Invariant::NothingIsLeft);
    let is_late = |event: &Event| matches!(event, Event::Late(AwaitPoint::Other("spawned")));
    for turn in &run.turns {
        assert_eq!(turn.events.iter().filter(|event| is_late(event)).count(), 1, "{run}");
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
async fn impossible_fault_is_detected() {
    driver(Scenario::PLAIN).every_point(&[Fault::Store(advisor_testkit::StoreFault::HangBefore)]).await;
}

#[tokio::test(start_paused = true)]
async fn hanging_turn_is_detected_and_located() {
    let mut driver = driver_with(|_| {
        from_fn("hangs", |_: ChatRequest, _: AdvisorChain| async { std::future::pending().await })
    });
    let run = driver.run(&[]).await.unwrap();
    assert_eq!(run.turns[0].outcome, Outcome::Stuck);
    let broken = run.check(&[]).unwrap_err();
    assert_eq!(broken.invariant, Invariant::TheEndComesLast);
    assert!(broken.problem.contains("hangs after 1 points; the last one is: Some(Beginning)"));
    assert!(broken.to_string().contains("TurnEnded(Stuck)"), "{broken}");
}

#[tokio::test]
async fn watcher_sees_every_point_before_it_passes() {
    use std::sync::Mutex;

    let points = AwaitPoints::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let (telling, passed) = (Arc::clone(&told), points.clone());
    points.watch(move |point, await_point| {
        assert_eq!(passed.passed().len(), point, "it is not passed yet");
        telling.lock().unwrap().push((point, await_point));
    });
    for name in ["one", "two", "three"] {
        points.pass(name).await.unwrap();
    }
    let await_points = ["one", "two", "three"].map(AwaitPoint::Other);
    assert_eq!(*told.lock().unwrap(), (0..).zip(await_points).collect::<Vec<_>>());
    assert_eq!(points.passed(), await_points);
}
