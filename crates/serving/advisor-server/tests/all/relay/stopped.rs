//! Turns that are stopped or deleted from another process, and turns whose client leaves.

use std::sync::Arc;
use std::time::Duration;

use advisor_server::{Appended, TurnRelay};
use advisor_testkit::{Answer, Gate, ScriptedModel};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use chat_memory_advisor::InMemoryStore;
use tokio::time::Instant;

use super::contract::{last, run_of};
use super::processes::{State, asking, joining, read_to_end, reading, running, two};
use crate::disconnects::{bodies, endless};
use crate::setting::{LIMIT, rest_of, setting_over, text, until, with_tokens};

#[tokio::test(start_paused = true)]
async fn law_k2_turn_is_stopped_elsewhere() {
    let two = two([Answer::new().text("It is").hang()]);
    let (_, rest) = until(two.begin().await, "It is").await;
    let joined = two.second.send(joining(None)).await;
    let since = Instant::now();
    two.second.stop().await;
    assert!(since.elapsed().as_secs_f32() < 1.5, "{:?}", since.elapsed());
    let read = two.second.read().await;
    assert!(read["messages"][1]["text"].as_str().unwrap().starts_with("It is"), "{read}");
    assert!(read["running"].is_null(), "{read}");
    for events in [rest_of(rest).await, text(joined).await] {
        assert!(events.contains("the request was cancelled"), "{events}");
    }
}

/// Of several turns, such as those that wait for one another, all are stopped.
#[tokio::test(start_paused = true)]
async fn law_k2_all_turns_are_stopped_elsewhere() {
    let two = two([]);
    let runs = ["t1", "t2"].map(|turn| run_of("default", "c1", turn, 9));
    for run in &runs {
        two.ways[0].begin(run).await.unwrap();
    }
    let ended = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        for run in &runs {
            let appended = two.ways[0].append(run, &last(0, &["0"])).await.unwrap();
            assert_eq!(appended, Appended::StopRequested, "{}", run.turn);
        }
    };
    let since = Instant::now();
    tokio::join!(two.second.stop(), ended);
    assert!(since.elapsed().as_secs_f32() < 1.0, "{:?}", since.elapsed());
}

/// A turn that begins meanwhile, and may be refused, does not end the wait.
#[tokio::test(start_paused = true)]
async fn law_k2_stop_elsewhere_waits_for_its_turn() {
    let two = two([Answer::new().text("It is").hang()]);
    let (_, _rest) = until(two.begin().await, "It is").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let other = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        two.ways[1].begin(&run_of("default", "c1", "t2", 9)).await.unwrap();
    };
    tokio::join!(two.second.stop(), other);
    let read = two.first.read().await;
    assert!(read["messages"][1]["text"].as_str().is_some_and(|text| text.starts_with("It is")), "{read}");
}

/// Nothing of a deleted conversation is left at any process.
#[tokio::test(start_paused = true)]
async fn conversation_is_deleted_elsewhere() {
    let two = two([Answer::new().text("It is").hang()]);
    let (_, rest) = until(two.begin().await, "It is").await;
    two.second.delete().await;
    rest_of(rest).await;
    for process in [&two.second, &two.first] {
        assert_eq!(process.get("/api/conversations/c1").await.status(), StatusCode::NOT_FOUND);
        assert_eq!(process.send(reading()).await.status(), StatusCode::NO_CONTENT);
    }
}

/// A reader elsewhere does not keep a turn alive whose own client has gone.
#[tokio::test(start_paused = true)]
async fn reader_elsewhere_keeps_no_turn_running() {
    for (path, body) in &bodies()[2..] {
        let (waiting, dropped) = endless();
        let two = two([Answer::new().text("It is").wait(waiting)]);
        let (_, rest) = until(two.first.post(path, body).await, "It is").await;
        let (_, elsewhere) = until(two.second.send(joining(None)).await, "It is").await;
        drop(rest);
        tokio::time::timeout(LIMIT, dropped).await.unwrap().unwrap();
        let events = rest_of(elsewhere).await;
        assert!(events.contains("the request was cancelled"), "{path}: {events}");
    }
}

/// The client whose disconnect has stopped a turn gets an answer when it tries again, at any process.
#[tokio::test(start_paused = true)]
async fn turn_that_a_disconnect_has_stopped_runs_again() {
    for again_at_first in [true, false] {
        let (path, body) = ("/api/chunks", asking("t1"));
        let two = two([Answer::new().text("It is").hang(), Answer::from_text("It is sunny.")]);
        let (_, rest) = until(two.first.post(path, &body).await, "It is").await;
        let (_, elsewhere) = until(two.second.send(joining(None)).await, "It is").await;
        drop(rest);
        // A reader elsewhere sees the end, before the turn begins again.
        assert!(rest_of(elsewhere).await.contains("the request was cancelled"));
        let process = if again_at_first { &two.first } else { &two.second };
        let again = text(process.post(path, &body).await).await;
        assert!(again.contains("It is sunny.") && !again.contains("cancelled"), "{again}");
        for process in [&two.first, &two.second] {
            assert!(read_to_end(process).await.contains("It is sunny."));
        }
        assert_eq!(two.model.calls(), 2);
    }
}

/// The end of a turn reaches other processes before its own one exits, also if the relay is slow.
#[tokio::test(start_paused = true)]
async fn end_of_a_stopped_server_is_read_elsewhere() {
    let two = two([Answer::new().text("It is").hang()]);
    let (_, _rest) = until(two.begin().await, "It is").await;
    let (way, slow) = (&two.ways[0], Duration::from_millis(300));
    way.set(State::Held);
    let stopped = async {
        two.first.server.stop(Duration::from_millis(10)).await.unwrap();
        way.set(State::Down);
    };
    let opened = async {
        tokio::time::sleep(slow).await;
        way.set(State::Open);
        std::future::pending().await
    };
    tokio::select! { () = stopped => {} () = opened => {} }
    assert!(read_to_end(&two.second).await.contains("the request was cancelled"));
}

#[tokio::test(start_paused = true)]
async fn law_m5_turns_elsewhere_are_those_of_the_tenant() {
    let gate = Gate::new();
    let mut two = two([Answer::new().text("Hello, ").gate(&gate).text("Ann.").done()]);
    (two.first, two.second) = (with_tokens(two.first), with_tokens(two.second));
    let request = |method: Method, path: &str, tenant: &str, body: String| {
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        request
            .header("authorization", format!("Bearer the-token-of-{tenant}"))
            .body(Body::from(body))
            .unwrap()
    };
    let body = asking("t1").to_string();
    let asked = two.first.send(request(Method::POST, "/api/chat", "ann", body)).await;
    let (_, rest) = until(asked, "Hello, ").await;
    for (method, path) in [
        (Method::GET, "/api/conversations/c1/stream"),
        (Method::GET, "/api/ui/c1/stream"),
        (Method::POST, "/api/conversations/c1/stop"),
        (Method::DELETE, "/api/conversations/c1"),
    ] {
        let response = two.second.send(request(method.clone(), path, "bob", String::new())).await;
        assert_eq!(response.status(), StatusCode::NO_CONTENT, "{method} {path}");
    }
    let anns =
        two.second.send(request(Method::GET, "/api/conversations/c1/stream", "ann", String::new())).await;
    gate.release();
    drop(rest);
    assert!(text(anns).await.contains("Ann."));
}

/// A server without a relay knows its own turns alone.
#[tokio::test(start_paused = true)]
async fn server_without_relay_stops_nothing_elsewhere() {
    let (store, gate) = (Arc::new(InMemoryStore::new()), Gate::new());
    let model = ScriptedModel::new([Answer::new().text("It is ").gate(&gate).text("noon.").done()]);
    let [first, second] = [(); 2].map(|()| setting_over(Arc::clone(&store), model.clone()));
    let (_, rest) = until(first.post("/api/chat", &asking("t1")).await, "It is ").await;
    assert!(running(&second).await.is_null());
    second.stop().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    gate.release();
    assert!(rest_of(rest).await.contains("noon."));
}
