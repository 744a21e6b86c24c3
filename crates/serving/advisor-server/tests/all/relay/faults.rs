//! A relay that is slow or absent, and processes that die.

use std::time::Duration;

use advisor_server::ServerLimits;
use advisor_testkit::{Answer, Gate};
use axum::body::Body;
use axum::http::StatusCode;
use chat_memory_advisor::InMemoryStore;
use serde_json::json;
use tokio::time::Instant;

use super::processes::{State, asking, joining, read_to_end, reading, running, two, two_over};
use crate::setting::{Log, post, refused, rest_of, text, until};

/// The relay keeps the items that arrived before the process died.
#[tokio::test(start_paused = true)]
async fn reader_notices_a_dead_process() {
    let two = two([Answer::new().text("It is").hang()]);
    let (_, _rest) = until(two.begin().await, "It is").await;
    let (_, body) = until(two.second.send(joining(None)).await, "It is").await;
    let since = Instant::now();
    two.ways[0].set(State::Held);
    assert!(rest_of(body).await.contains("the answer broke off"));
    assert!((9.0..11.0).contains(&since.elapsed().as_secs_f32()), "{:?}", since.elapsed());
    assert!(running(&two.second).await.is_null());
    assert_eq!(two.second.send(joining(None)).await.status(), StatusCode::NO_CONTENT);
    let read = text(two.second.send(reading()).await).await;
    assert!(read.contains("It is") && read.contains("the answer broke off"), "{read}");
}

/// Neither state of the relay delays or fails a turn, or its local readers.
#[tokio::test(start_paused = true)]
async fn turn_runs_without_its_relay() {
    for state in [State::Down, State::Held] {
        let two = two([Answer::from_text("It is noon."), Answer::from_text("It is one.")]);
        two.ways[0].set(state);
        let since = Instant::now();
        let unnamed = json!({"message": "How late is it?", "conversation": "c1"});
        assert!(text(two.first.post("/api/chat", &unnamed).await).await.contains("noon."));
        assert_eq!(since.elapsed(), Duration::ZERO, "the id is the server's, so no process can have it");
        assert!(text(two.first.post("/api/chat", &asking("t2")).await).await.contains("one."));
        assert!(since.elapsed() <= Duration::from_millis(501), "{:?}", since.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn process_without_relay_refuses_turns_elsewhere() {
    for state in [State::Down, State::Held] {
        let two = two([Answer::new().text("It is").hang()]);
        let (_, _rest) = until(two.begin().await, "It is").await;
        two.ways[1].set(state);
        let stop = || post("/api/conversations/c1/stop").body(Body::empty()).unwrap();
        for request in [joining(None), reading(), stop()] {
            let response = two.second.send(request).await;
            assert_eq!(response.headers()["retry-after"], "1");
            assert_eq!(refused(response, StatusCode::SERVICE_UNAVAILABLE).await, "relay_unavailable");
        }
        let read = two.second.read().await;
        assert!(read["running"].is_null() && read["messages"][0]["text"] == "How is it?", "{read}");
    }
}

/// A relay that is back gets the items that it missed: the beginning, the middle or the end.
#[tokio::test(start_paused = true)]
async fn relay_that_is_back_gets_the_whole_turn() {
    for state in [State::Down, State::Held] {
        for outage in 0..3 {
            let [begun, ended] = [Gate::new(), Gate::new()];
            let answer =
                Answer::new().text("It ").gate(&begun).text("is ").gate(&ended).text("sunny.").done();
            let two = two([answer]);
            let way = &two.ways[0];
            if outage == 0 {
                way.set(state);
            }
            let (mut whole, mut rest) = until(two.begin().await, "It ").await;
            for (number, (gate, wanted)) in [(&begun, "is "), (&ended, "[DONE]")].into_iter().enumerate() {
                if outage == number + 1 {
                    // The earlier chunks are appended.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    way.set(state);
                }
                gate.release();
                let (read, next) = until(axum::http::Response::new(Body::from_stream(rest)), wanted).await;
                whole.push_str(&read);
                rest = next;
            }
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            way.set(State::Open);
            tokio::time::sleep(Duration::from_millis(2_500)).await;
            assert_eq!(read_to_end(&two.second).await, whole, "{state:?}, outage {outage}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn law_r3_failing_relay_is_logged_once_without_content() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _installed = tracing::subscriber::set_default(subscriber);
    let gate = Gate::new();
    let two = two([Answer::new().text("canary ").gate(&gate).text("canary").done()]);
    two.ways[0].set(State::Down);
    let body = json!({"message": "canary", "conversation": "c1", "turn": "t1"});
    let (_, rest) = until(two.first.post("/api/chat", &body).await, "canary").await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    gate.release();
    rest_of(rest).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let written = log.text();
    let warning = "turns of other processes cannot be reached: the relay of turns failed: the way is down";
    assert_eq!(written.matches(warning).count(), 1, "{written}");
    assert!(!written.contains("canary"), "{written}");
}

/// A relay that stays away gets the turn a bounded number of times.
#[tokio::test(start_paused = true)]
async fn relay_that_stays_away_is_given_up() {
    let two = two([Answer::from_text("It is noon.")]);
    two.ways[0].set(State::Down);
    text(two.begin().await).await;
    two.first.server.stop(Duration::ZERO).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (batches, _) = two.ways[0].batches();
    assert_eq!(batches, 0, "no batch is sent before the turn is claimed");
    two.ways[0].set(State::Open);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(two.second.send(reading()).await.status(), StatusCode::NO_CONTENT);
}

/// Chunks that wait for the relay wait in the bounded log of the turn. A reader elsewhere learns of the gap.
#[tokio::test(start_paused = true)]
async fn law_r1_slow_relay_bounds_what_waits_for_it() {
    let mut limits = ServerLimits::default();
    limits.kept_chunks = 8;
    let gate = Gate::new();
    let words = (0..1_000).fold(Answer::new().text("It ").gate(&gate), |answer, _| answer.text("is "));
    let two = two_over(InMemoryStore::new(), [words.done()], limits);
    let (_, rest) = until(two.begin().await, "It ").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let joined = two.second.send(joining(None)).await;
    two.ways[0].set(State::Held);
    gate.release();
    rest_of(rest).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    two.ways[0].set(State::Open);
    let events = text(joined).await;
    assert!(events.contains("It ") && events.contains("too slow"), "{events}");
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(refused(two.second.send(reading()).await, StatusCode::NOT_FOUND).await, "not_found");
    let (_, most) = two.ways[0].batches();
    assert!(most <= 10, "{most} items in one batch");
}

/// Chunks behind a gap have their own numbers, also if the batch before the gap was refused several times.
#[tokio::test(start_paused = true)]
async fn law_s4_reader_elsewhere_learns_of_a_gap() {
    let mut limits = ServerLimits::default();
    limits.kept_chunks = 8;
    let [waiting, fast] = [Gate::new(), Gate::new()];
    let begun = Answer::new().text("It ").gate(&waiting).text("was ").gate(&fast);
    let words = (0..1_000).fold(begun, |answer, _| answer.text("is "));
    let two = two_over(InMemoryStore::new(), [words.done()], limits);
    let (_, rest) = until(two.begin().await, "It ").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let joined = two.second.send(joining(None)).await;
    two.ways[0].set(State::Down);
    waiting.release();
    tokio::time::sleep(Duration::from_millis(100)).await;
    fast.release();
    rest_of(rest).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    two.ways[0].set(State::Open);
    let events = text(joined).await;
    assert!(events.contains("It ") && events.contains("too slow"), "{events}");
    assert!(!events.contains("\"is \""), "{events}");
}

/// While no call is answered, ended turns are kept for the relay up to the number of turns that may run.
#[tokio::test(start_paused = true)]
async fn law_r1_ended_turns_that_wait_for_the_relay_are_bounded() {
    let mut limits = ServerLimits::default();
    limits.running_turns = 4;
    let two = two_over(InMemoryStore::new(), [(); 40].map(|()| Answer::from_text("It is noon.")), limits);
    two.ways[0].set(State::Held);
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    for _ in 0..40 {
        let unnamed = json!({"message": "How late is it?", "conversation": "c1"});
        assert!(text(two.first.post("/api/chat", &unnamed).await).await.contains("noon."));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks() - before;
    assert!((1..=limits.running_turns).contains(&tasks), "{tasks} tasks");
}
