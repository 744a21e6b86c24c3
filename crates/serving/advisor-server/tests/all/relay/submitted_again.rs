//! Requests that are submitted again, at another process.

use std::time::Duration;

use advisor_core::{ConversationKey, Error, ErrorKind};
use advisor_server::TurnRelay;
use advisor_testkit::{Answer, Gate};
use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::processes::{State, Two, asking, joining, read_to_end, reading, running, two};
use crate::disconnects::bodies;
use crate::setting::{Setting, refused, rest_of, text, until};

#[tokio::test(start_paused = true)]
async fn repeated_request_joins_elsewhere_on_every_route() {
    for (path, body) in &bodies() {
        let gate = Gate::new();
        let two = two([Answer::new().text("It is ").gate(&gate).text("sunny.").done()]);
        let (shown, rest) = until(two.first.post_as("t1", path, body).await, "It is ").await;
        let again = two.second.post_as("t1", path, body).await;
        assert_eq!(again.status(), StatusCode::OK, "{path}");
        gate.release();
        let whole = shown + &rest_of(rest).await;
        let text_of = |events: &str| (events.contains("sunny."), events.len());
        assert_eq!(text_of(&text(again).await), text_of(&whole), "{path}");
        // After its end, too.
        let again = two.second.post_as("t1", path, body).await;
        assert_eq!(text_of(&text(again).await), text_of(&whole), "{path}");
        assert_eq!(two.model.calls(), 1, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn answer_in_one_piece_is_joined_elsewhere() {
    let gate = Gate::new();
    let two = two([Answer::new().text("It is ").gate(&gate).text("sunny.").done()]);
    let body = json!({"messages": [{"role": "user", "content": "Hi"}], "user": "c1"});
    let ask =
        async |process: &Setting| text(process.post_as("t1", "/v1/chat/completions", &body).await).await;
    let asked = async {
        gate.reached().await;
        tokio::join!(ask(&two.second), async { gate.release() }).0
    };
    let (first, second) = tokio::join!(ask(&two.first), asked);
    assert!(first.contains("It is sunny."), "{first}");
    assert_eq!(second.len(), first.len());
    assert_eq!(two.model.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn other_input_under_the_same_id_is_refused_elsewhere() {
    let two = two([Answer::new().text("It is").hang()]);
    let (_, _rest) = until(two.begin().await, "It is").await;
    let other = json!({"message": "Something else", "conversation": "c1", "turn": "t1"});
    let code = refused(two.second.post("/api/chat", &other).await, StatusCode::UNPROCESSABLE_ENTITY).await;
    assert_eq!(code, "turn_id_reused");
}

/// A refusal is no answer of the turn, at no process.
#[tokio::test(start_paused = true)]
async fn refused_turn_begins_elsewhere() {
    let gate = Gate::new();
    let two = two([Answer::new().text("It is").gate(&gate).done(), Answer::from_text("It rains.")]);
    let (_, rest) = until(two.begin().await, "It is").await;
    let busy = two.first.post("/api/chat", &asking("t2")).await;
    assert_eq!(refused(busy, StatusCode::CONFLICT).await, "conversation_busy");
    gate.release();
    rest_of(rest).await;
    sleep(Duration::from_millis(100)).await;
    let again = text(two.second.post("/api/chat", &asking("t2")).await).await;
    assert!(again.contains("It rains."), "{again}");
}

/// The relay does not have the end of a refused turn yet, and nobody waits for it.
#[tokio::test(start_paused = true)]
async fn refused_turn_does_not_run() {
    let limited = Error::new(ErrorKind::RateLimited { retry_after: None }, "busy");
    let two = two([Answer::refused(limited)]);
    two.ways[0].set(State::AppendHeld);
    let busy = two.begin().await;
    assert_eq!(refused(busy, StatusCode::TOO_MANY_REQUESTS).await, "rate_limited");
    assert_eq!(running(&two.first).await, Value::Null);
}

/// Of two requests that find the turn expired, one begins it again. The other does not make the server forget that run.
#[tokio::test(start_paused = true)]
async fn expired_turn_that_begins_again_is_not_forgotten() {
    let failing = Answer::new().text("It is").error(Error::new(ErrorKind::Connection, "no route"));
    let two = two([failing, Answer::new().text("It rains").hang()]);
    text(two.begin().await).await;
    sleep(Duration::from_millis(200)).await;
    two.ways[0].forget(&ConversationKey::new("c1").unwrap()).await.unwrap();
    two.ways[0].set(State::ReadUnanswered);
    let opened = async {
        sleep(Duration::from_millis(100)).await;
        two.ways[0].set(State::Open);
    };
    let (one, other, ()) = tokio::join!(two.begin(), two.begin(), opened);
    let reading = [until(one, "It rains").await.1, until(other, "It rains").await.1];
    two.first.server.stop(Duration::ZERO).await.unwrap();
    for rest in reading {
        assert!(rest_of(rest).await.contains("the request was cancelled"));
    }
}

/// Its process has died, so the turn runs here.
#[tokio::test(start_paused = true)]
async fn turn_of_a_dead_process_runs_again_elsewhere() {
    let two = two([Answer::new().text("It is").hang(), Answer::from_text("It is sunny.")]);
    let (_, rest) = until(two.begin().await, "It is").await;
    // As a killed process, it neither stores nor relays anything more.
    drop(rest);
    two.ways[0].set(State::Held);
    two.first.server.stop(Duration::ZERO).await.unwrap();
    let early = two.second.send(reading()).await;
    assert!(text(early).await.contains("the answer broke off"));
    let again = text(two.second.post("/api/chat", &asking("t1")).await).await;
    assert!(again.contains("It is sunny."), "{again}");
    assert_eq!(two.model.calls(), 2);
}

/// A client that leaves while the relay answers does not block its turn.
#[tokio::test(start_paused = true)]
async fn turn_of_a_dropped_request_runs_elsewhere() {
    let two = two([Answer::from_text("It is sunny.")]);
    two.ways[0].set(State::BeginUnanswered);
    assert!(timeout(Duration::from_millis(200), two.begin()).await.is_err());
    assert_eq!(two.model.calls(), 0);
    runs_at_once_at_the_second(&two).await;
}

/// A server that stops does not block turns that it refuses.
#[tokio::test(start_paused = true)]
async fn turn_that_a_stopping_server_refuses_runs_elsewhere() {
    let two = two([Answer::from_text("It is sunny.")]);
    two.ways[0].set(State::BeginUnanswered);
    let stopped = async {
        sleep(Duration::from_millis(100)).await;
        two.first.server.stop(Duration::ZERO).await.unwrap();
    };
    let (refusal, ()) = tokio::join!(two.begin(), stopped);
    assert_eq!(refused(refusal, StatusCode::SERVICE_UNAVAILABLE).await, "stopping");
    runs_at_once_at_the_second(&two).await;
}

async fn runs_at_once_at_the_second(two: &Two) {
    sleep(Duration::from_millis(1)).await;
    let since = Instant::now();
    let again = text(two.second.post("/api/chat", &asking("t1")).await).await;
    assert!(again.contains("It is sunny."), "{again}");
    assert!(since.elapsed() < Duration::from_millis(100), "{:?}", since.elapsed());
}

/// A process starts a turn a second time if the relay is slow. This copy does not hide the turn.
#[tokio::test(start_paused = true)]
async fn copy_of_a_turn_does_not_hide_it() {
    // The store has no leases, so the copy runs.
    let two = two(["It is", "A copy"].map(|text| Answer::new().text(text).hang()));
    let (_, rest) = until(two.begin().await, "It is").await;
    two.ways[1].set(State::Held);
    let opened = async {
        sleep(Duration::from_millis(600)).await;
        two.ways[1].set(State::Open);
    };
    let asked = asking("t1");
    let (copy, ()) = tokio::join!(two.second.post("/api/chat", &asked), opened);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(running(&two.second).await, "t1");
    let (_, joined) = until(two.second.send(joining(None)).await, "It is").await;
    two.second.stop().await;
    for body in [rest, joined] {
        let events = timeout(Duration::from_secs(2), rest_of(body)).await.unwrap();
        assert!(events.contains("the request was cancelled"), "{events}");
    }
    let copied = text(copy).await;
    assert!(copied.contains("A copy") && copied.contains("the request was cancelled"), "{copied}");
    let again = text(two.second.post("/api/chat", &asking("t1")).await).await;
    for events in [again, read_to_end(&two.second).await] {
        assert!(events.contains("It is") && events.contains("the request was cancelled"), "{events}");
    }
    assert_eq!(two.model.calls(), 2);
}
