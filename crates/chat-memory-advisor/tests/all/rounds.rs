//! Tests of turns with several rounds: the records of the loop, and the entries that memory makes of them.

use std::sync::{Arc, Mutex};

use advisor_core::{
    AdvisorChain, BlockDelta, CallKey, CallStart, ChatClient, ChatRequest, Chunk, EditedChunks, ErrorKind,
    FinishReason, Message, MessageList, Phase, Placement, Record, Step, ToolCall, ToolResult, TurnEnd,
    TurnId, from_fn,
};
use advisor_testkit::{Answer, ScriptedModel};
use chat_memory_advisor::ChatMemoryAdvisor;

use crate::store::{TestStore, Watched, test_store};
use crate::support::{Rounds, ask, builder, client, key, log_words, plain, read_until, sent, turn, words};

const NOT_RUN: &str = "not run: the conversation went on without it";

const PLACES: [Phase; 2] = [Phase::Round, Phase::Turn];

fn memory() -> (ChatMemoryAdvisor, TestStore) {
    let store = test_store();
    (ChatMemoryAdvisor::new(store.clone()), store)
}

fn two_rounds() -> [Answer; 2] {
    [Answer::from_calls([("1", "f", "{}"), ("2", "f", "{}")]), Answer::from_text("done")]
}

fn result(id: &str) -> Message {
    Message::tool(ToolResult::new(&ToolCall::new(id, "f", ""), vec!["ok".into()]))
}

#[tokio::test]
async fn both_placements_store_same_entries_at_same_points() {
    for place in PLACES {
        let (memory, store) = memory();
        let (client, model) = client(&memory, place, two_rounds());
        ask(&client, "go").await.unwrap();
        assert_eq!(sent(&model, 1), "s:S u:go a(1,2) r1 r2", "{place:?}");
        assert_eq!(log_words(&store.log(&key()).await), "u:go a(1,2) r1 r2 a:done .", "{place:?}");
        let last = if place == Phase::Round { "2/answer-4" } else { "2/end-4" };
        assert_eq!(store.appended(), ["0/input", "1/answer-1", "1/results-2", last], "{place:?}");
        assert_eq!(store.loads(), 1, "{place:?}");
    }
}

#[tokio::test]
async fn ids_may_come_again_in_another_round() {
    for place in PLACES {
        let (memory, store) = memory();
        let calls = || Answer::from_calls([("0", "f", "{}")]);
        let (client, model) = client(&memory, place, [calls(), calls(), Answer::from_text("done")]);
        ask(&client, "go").await.unwrap();
        assert_eq!(sent(&model, 2), "s:S u:go a(0) r0 a(0) r0", "{place:?}");
        assert_eq!(log_words(&store.log(&key()).await), "u:go a(0) r0 a(0) r0 a:done .", "{place:?}");
    }
}

#[tokio::test]
async fn injected_messages_are_stored_once_unless_ephemeral() {
    for place in PLACES {
        let (memory, store) = memory();
        let model = ScriptedModel::new(two_rounds());
        let inject = vec![Message::user("hurry"), Message::user("please").ephemeral()];
        let rounds = Rounds { inject, ..Rounds::default() };
        let client = builder(&memory, place, &model).advisor(rounds).build().unwrap();
        ask(&client, "go").await.unwrap();
        assert_eq!(
            words(&model.prompts()[1].messages),
            "s:S u:go a(1,2) r1 r2 u:hurry u:please",
            "{place:?}"
        );
        assert_eq!(log_words(&store.log(&key()).await), "u:go a(1,2) r1 r2 u:hurry a:done .", "{place:?}");
    }
}

#[tokio::test]
async fn answer_edited_downstream_is_not_stored_again() {
    let (memory, store) = memory();
    let model = ScriptedModel::new([
        Answer::new().text("secret").call("1", "f", "{}").finish(FinishReason::ToolCalls),
        Answer::from_text("secret"),
    ]);
    let redact = from_fn("redact", |request: ChatRequest, next: AdvisorChain| async move {
        Ok(next.next_stream(request).await?.edit_with(
            |chunk: Chunk, out: &mut EditedChunks<'_>| match chunk {
                Chunk::Delta { block, delta: BlockDelta::Text(_) } => {
                    out.push(Chunk::Delta { block, delta: BlockDelta::Text("***".into()) });
                }
                chunk => out.push(chunk),
            },
        ))
    })
    .with_placement(Placement::new(Phase::Round));
    let client = ChatClient::builder(model.clone())
        .advisor(Rounds::default())
        .advisor(redact)
        .advisor(memory)
        .build()
        .unwrap();
    assert_eq!(ask(&client, "go").await.unwrap(), "***");
    assert_eq!(log_words(&store.log(&key()).await), "u:go a(1)secret r1 a:secret .");

    let client_side = |ids: &[&str]| {
        let blocks = ids.iter().map(|id| ToolCall::new(*id, "f", "changed").into()).collect();
        let end = Step::End(TurnEnd::Completed(FinishReason::ToolCalls));
        vec![Record::new(1, end, vec![Message::assistant_blocks(blocks)])]
    };
    let (log, _) = with_records(calls(), client_side(&["1", "2"])).await;
    assert_eq!(log, "u:go a(1,2) .", "nor when the turn ends with it");
    let (log, _) = with_records(calls(), client_side(&["1"])).await;
    assert_eq!(log, "u:go a(1,2) r1! r2! a(1) .", "but the calls are those that go on");
}

#[tokio::test]
async fn paused_answer_is_stored_and_turn_continues() {
    for place in PLACES {
        let (memory, store) = memory();
        let paused = || Answer::new().text("part").finish(FinishReason::Paused);
        let (client, model) = client(&memory, place, [paused(), paused(), Answer::from_text("rest")]);
        ask(&client, "go").await.unwrap();
        assert_eq!(sent(&model, 2), "s:S u:go a:part a:part", "{place:?}");
        assert_eq!(log_words(&store.log(&key()).await), "u:go a:part a:part a:rest .", "{place:?}");
    }
}

#[tokio::test]
async fn retry_without_results_still_sends_valid_transcript() {
    let (memory, store) = memory();
    let model = ScriptedModel::new([calls(), Answer::from_text("done")]);
    let careless = from_fn("careless", |request: ChatRequest, next: AdvisorChain| async move {
        next.next_call(request.clone()).await?;
        next.next_stream(request).await
    });
    let client = builder(&memory, Phase::Round, &model).advisor(careless).build().unwrap();
    ask(&client, "go").await.unwrap();
    assert_eq!(sent(&model, 1), "s:S u:go a(1,2) r1! r2!");
    assert_eq!(log_words(&store.log(&key()).await), "u:go a(1,2) r1! r2! a:done .");
}

#[tokio::test]
async fn steered_turn_ends_with_its_last_end() {
    for place in PLACES {
        let (memory, store) = memory();
        let model = ScriptedModel::new(["one", "two"].map(Answer::from_text));
        let rounds = Rounds { steer: Some(Message::user("more")), ..Rounds::default() };
        let client = builder(&memory, place, &model).advisor(rounds).build().unwrap();
        ask(&client, "go").await.unwrap();
        assert_eq!(sent(&model, 1), "s:S u:go a:one u:more", "{place:?}");
        let log = log_words(&store.log(&key()).await);
        let expected =
            if place == Phase::Round { "u:go a:one . u:more a:two ." } else { "u:go a:one u:more a:two ." };
        assert_eq!(log, expected, "inside the loop memory cannot know that the answer was not the last");
        assert_eq!(words(&memory.transcript(&key()).await.unwrap()), "u:go a:one u:more a:two");
        assert!(store.log(&key()).await.windows(2).all(|pair| pair[0].turn == pair[1].turn));
    }
}

#[tokio::test]
async fn continued_turn_reports_client_side_calls_not_run() {
    for place in PLACES {
        let (memory, store) = memory();
        let model = ScriptedModel::new([calls(), Answer::from_text("done")]);
        let insists = from_fn("insists", |mut request: ChatRequest, next: AdvisorChain| async move {
            next.next_call(request.clone()).await?;
            request.messages.push(Message::user("Without, then."));
            next.next_stream(request).await
        });
        let rounds = Rounds { end_client_side: true, ..Rounds::default() };
        let outside = ChatClient::builder(model.clone()).advisor_in(Phase::Turn, insists);
        let client = outside.advisor_in(place, memory.clone()).advisor(rounds).build().unwrap();
        ask(&client, "go").await.unwrap();
        let results = |messages: &MessageList| {
            messages.iter().filter_map(Message::tool_result).map(ToolResult::text).collect::<Vec<_>>()
        };
        assert_eq!(sent(&model, 1), "u:go a(1,2) r1! r2! u:Without, then.", "{place:?}");
        assert_eq!(results(&model.prompts()[1].messages), [NOT_RUN, NOT_RUN]);
        assert_eq!(results(&memory.transcript(&key()).await.unwrap()), [NOT_RUN, NOT_RUN]);
        assert_eq!(log_words(&store.log(&key()).await), "u:go a(1,2) . r1! r2! u:Without, then. a:done .");
    }
}

/// Runs one turn in which an advisor outside memory feeds records by hand after the answer.
async fn with_records(answer: Answer, records: Vec<Record>) -> (String, String) {
    let (memory, store) = memory();
    let model = ScriptedModel::new([answer]);
    let feed = from_fn("feed", move |request: ChatRequest, next: AdvisorChain| {
        let records = records.clone();
        async move {
            let turn = Arc::clone(&request.turn);
            Ok(next.next_stream(request).await?.on_completed(move |response| async move {
                for record in &records {
                    turn.record(record).await?;
                }
                Ok(response)
            }))
        }
    });
    let client = builder(&memory, Phase::Round, &model).advisor(feed).build().unwrap();
    ask(&client, "go").await.unwrap();
    let log = log_words(&store.log(&key()).await);
    (log, words(&memory.transcript(&key()).await.unwrap()))
}

fn calls() -> Answer {
    Answer::from_calls([("1", "f", "{}"), ("2", "f", "{}")])
}

fn stop() -> TurnEnd {
    TurnEnd::Completed(FinishReason::Stop)
}

fn start(position: u32, id: &str) -> CallStart {
    CallStart::new(CallKey::new(TurnId::new("t").unwrap(), 1, position), id)
}

#[tokio::test]
async fn law_t5_stored_start_marks_call_to_be_verified() {
    let announced = || Record::new(1, Step::Started(vec![start(1, "2")]), vec![]);
    let failed = Step::End(TurnEnd::Failed { partial: "".into() });
    let records = vec![announced(), Record::new(1, failed, vec![])];
    let (log, view) = with_records(calls(), records).await;
    assert_eq!(log, "u:go a(1,2) started(2) r1! r2! failed()");
    assert_eq!(view, "u:go a(1,2) r1! r2! a:[interrupted]");
    let results = vec![result("1"), result("2")];
    let direct = Step::End(TurnEnd::Completed(FinishReason::ReturnDirect));
    let records = vec![
        announced(),
        Record::new(1, Step::Results, results),
        Record::new(2, direct, vec![Message::assistant("direct")]),
    ];
    let (log, view) = with_records(calls(), records).await;
    assert_eq!(log, "u:go a(1,2) started(2) r1 r2 a:direct .");
    assert_eq!(view, "u:go a(1,2) r1 r2 a:direct");
}

#[tokio::test]
async fn law_t5_started_call_may_not_start_again() {
    let (memory, store) = memory();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    let twice = from_fn("twice", move |request: ChatRequest, next: AdvisorChain| {
        let told = Arc::clone(&told);
        async move {
            let turn = Arc::clone(&request.turn);
            let answered = next.next_stream(request).await?.on_completed(move |response| async move {
                turn.record(&Record::new(1, Step::Answer, vec![response.message().clone()])).await?;
                for starts in [vec![start(0, "1")], vec![start(1, "2"), start(0, "1")], vec![start(1, "2")]] {
                    let outcome = turn.record(&Record::new(1, Step::Started(starts), vec![])).await;
                    told.lock().unwrap().push(outcome.map_err(|error| error.kind()));
                }
                Ok(response)
            });
            Ok(answered)
        }
    });
    let model = ScriptedModel::new([calls()]);
    let client = builder(&memory, Phase::Round, &model).advisor_in(Phase::Turn, twice).build().unwrap();
    ask(&client, "go").await.unwrap();
    let seen = seen.lock().unwrap().clone();
    assert!(matches!(seen[..], [Ok(()), Err(ErrorKind::StoreConflict { current: 3 }), Ok(())]), "{seen:?}");
    let log = log_words(&store.log(&key()).await);
    assert_eq!(log, "u:go a(1,2) started(1) started(2) .", "all of an announcement or nothing");
}

#[tokio::test]
async fn end_without_new_information_is_not_stored() {
    for end in
        [stop(), TurnEnd::Failed { partial: "hi".into() }, TurnEnd::Interrupted { partial: "hi".into() }]
    {
        let (log, _) =
            with_records(Answer::from_text("hi"), vec![Record::new(1, Step::End(end), Vec::new())]).await;
        assert_eq!(log, "u:go a:hi .", "what was answered stays answered");
    }
}

#[tokio::test]
async fn different_end_counts() {
    let end = |end, messages| vec![Record::new(2, Step::End(end), messages)];
    let (log, view) = with_records(Answer::from_text("hi"), end(TurnEnd::RolledBack, Vec::new())).await;
    assert_eq!((log.as_str(), view.as_str()), ("u:go a:hi . undone", ""));
    let limit = TurnEnd::Completed(FinishReason::Length);
    let (log, view) = with_records(Answer::from_text("hi"), end(limit, Vec::new())).await;
    assert_eq!((log.as_str(), view.as_str()), ("u:go a:hi . .", "u:go a:hi"));
    let more = end(stop(), vec![Message::assistant("and")]);
    let (log, view) = with_records(Answer::from_text("hi"), more).await;
    assert_eq!((log.as_str(), view.as_str()), ("u:go a:hi . a:and .", "u:go a:hi a:and"));
    let direct = TurnEnd::Completed(FinishReason::ReturnDirect);
    let records = vec![
        Record::new(1, Step::Results, vec![result("1"), result("2")]),
        Record::new(2, Step::End(direct), vec![Message::assistant("direct")]),
    ];
    let (log, _) = with_records(calls(), records).await;
    assert_eq!(log, "u:go a(1,2) r1 r2 a:direct .");
}

#[tokio::test]
async fn failed_turn_answers_open_calls_without_repeating_text() {
    let answer = || Answer::new().text("Look").call("1", "f", "{}").finish(FinishReason::ToolCalls);
    for (round, partial, log, view) in [
        (1, "Look", "u:go a(1)Look r1! failed()", "u:go a(1)Look r1! a:[interrupted]"),
        (2, "An", "u:go a(1)Look r1! failed(An)", "u:go a(1)Look r1! a:An [interrupted]"),
    ] {
        let end = Step::End(TurnEnd::Failed { partial: partial.into() });
        let got = with_records(answer(), vec![Record::new(round, end, Vec::new())]).await;
        assert_eq!((got.0.as_str(), got.1.as_str()), (log, view));
    }
}

#[tokio::test]
async fn turn_cannot_continue_after_another_has_begun() {
    let (memory, store) = memory();
    let (client, _) = plain(&memory, ["one", "two"].map(Answer::from_text));
    let first = turn(&client, "1");
    let shared = Arc::clone(first.turn());
    first.call().await.unwrap();
    let mut second = turn(&client, "2");
    read_until(&mut second, "two").await;
    let late = Record::new(1, Step::Injected, vec![Message::user("late")]);
    assert_eq!(shared.record(&late).await.unwrap_err().kind(), ErrorKind::ConversationBusy);
    second.call().await.unwrap();
    assert_eq!(
        shared.record(&late).await.unwrap_err().kind(),
        ErrorKind::StoreConflict { current: 6 },
        "nor after that one's end"
    );
    assert_eq!(log_words(&store.log(&key()).await), "u:1 a:one . u:2 a:two .");
}
