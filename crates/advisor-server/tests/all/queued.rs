//! Turns that wait for another one of their conversation.

use advisor_testkit::{Answer, Gate, ScriptedModel};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore, OnBusy};
use futures::StreamExt;
use serde_json::json;
use tokio::time::timeout;

use crate::setting::{LIMIT, Setting, chain_over, text, until};

/// Returns a server whose turns wait for one another, and the streams of two turns: one answers, and one waits for it.
async fn two_turns(answer: Answer) -> (Setting, Vec<axum::body::BodyDataStream>) {
    let model = ScriptedModel::new([answer, Answer::from_text("It rains.")]);
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new()).with_on_busy(OnBusy::Queue);
    let setting = chain_over(memory, model, |client| client);
    let ask = |turn| json!({"message": "How is it?", "conversation": "c1", "turn": turn});
    let (_, first) = until(setting.post("/api/chat", &ask("t1")).await, "It is").await;
    let second = setting.post("/api/chat", &ask("t2")).await.into_body().into_data_stream();
    (setting, vec![first, second])
}

fn request(method: Method, path: &str) -> Request<Body> {
    Request::builder().method(method).uri(path).body(Body::empty()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn law_k2_stop_and_delete_end_waiting_turns_too() {
    let stop = (Method::POST, "/api/conversations/c1/stop");
    for (method, path) in [stop, (Method::DELETE, "/api/conversations/c1")] {
        let (setting, streams) = two_turns(Answer::new().text("It is").hang()).await;
        let stopped = setting.send(request(method, path)).await;
        assert_eq!(stopped.status(), StatusCode::NO_CONTENT, "{path}");
        for stream in streams {
            let events: Vec<_> = timeout(LIMIT, stream.map(Result::unwrap).collect()).await.unwrap();
            let events = String::from_utf8(events.concat()).unwrap();
            assert!(events.contains("the request was cancelled"), "{path}: {events}");
        }
        assert_eq!(setting.model.calls(), 1, "{path}");
    }
}

/// The turn that runs is the one that answers, not the one that waits.
#[tokio::test(start_paused = true)]
async fn turn_that_runs_is_the_oldest_one() {
    let gate = Gate::new();
    let (setting, _streams) = two_turns(Answer::new().text("It is").gate(&gate).text(" sunny.").done()).await;
    assert_eq!(setting.read().await["running"], "t1");
    let joined = setting.get("/api/conversations/c1/stream").await;
    gate.release();
    assert!(text(joined).await.contains("sunny."));
}
