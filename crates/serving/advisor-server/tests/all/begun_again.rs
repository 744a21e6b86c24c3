//! Turns without an outcome, which begin again under their id: at the same process, and at another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use advisor_core::{
    AdvisorChain, ChatClient, ChatRequest, Error, ErrorKind, Phase, Placement, StreamAdvisor, from_fn,
};
use advisor_server::ChatServer;
use advisor_testkit::{Answer, ScriptedModel};
use axum::body::Body;
use axum::http::StatusCode;
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::relay::in_memory::InMemoryRelay;
use crate::retries::is_repeated;
use crate::setting::{Setting, json_of, post, setting, text};

/// Returns the same process twice, or two over a relay.
fn processes(
    client: &ChatClient,
    memory: &ChatMemoryAdvisor,
    relay: Option<InMemoryRelay>,
) -> [ChatServer; 2] {
    let server = || ChatServer::new(client.clone(), memory.clone());
    match relay {
        Some(relay) => [server().with_relay(relay.clone()), server().with_relay(relay)],
        None => {
            let server = server();
            [server.clone(), server]
        }
    }
}

/// Without a relay, and with one.
fn relays() -> [Option<InMemoryRelay>; 2] {
    [None, Some(InMemoryRelay::new())]
}

/// The end of a turn that an advisor outside memory decides.
#[derive(Debug, Clone, Copy)]
enum Refusal {
    Error(ErrorKind),
    Reply,
}

const REFUSALS: [Refusal; 3] =
    [Refusal::Error(ErrorKind::Store), Refusal::Error(ErrorKind::Advisor), Refusal::Reply];

/// Returns an advisor that refuses the first turn outside memory.
fn refusing(refusal: Refusal) -> impl StreamAdvisor {
    let is_first = Arc::new(AtomicBool::new(true));
    let advisor = from_fn("refusing", move |request: ChatRequest, next: AdvisorChain| {
        let is_first = is_first.swap(false, Ordering::SeqCst);
        async move {
            match refusal {
                Refusal::Error(kind) if is_first => Err(Error::new(kind, "canary")),
                Refusal::Reply if is_first => Ok(request.answer("Please be brief.")),
                _ => next.next_stream(request).await,
            }
        }
    });
    advisor.with_placement(Placement::new(Phase::Turn))
}

/// Returns the processes of a chain that refuses the first turn outside memory.
fn refused_at_first(refusal: Refusal, relay: Option<InMemoryRelay>) -> [Setting; 2] {
    let model = ScriptedModel::new(["One.", "Two."].map(Answer::from_text));
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = ChatClient::builder(model.clone()).advisor(refusing(refusal)).advisor(memory.clone());
    let servers = processes(&client.build().unwrap(), &memory, relay);
    servers.map(|server| Setting { server, model: model.clone() })
}

fn sending(text: &str, trigger: &str, replaced: Option<&str>) -> Value {
    let message = json!({"id": "u1", "role": "user", "parts": [{"type": "text", "text": text}]});
    json!({"id": "c1", "messages": [message], "trigger": trigger, "messageId": replaced})
}

/// Memory never had the turn, so an edit or a regeneration begins it.
#[tokio::test(start_paused = true)]
async fn turn_refused_outside_memory_is_replaced() {
    for refusal in REFUSALS {
        for (said, trigger, replaced) in [
            ("Other", "submit-message", Some("u1")),
            ("Hi", "regenerate-message", None),
            ("Hi", "regenerate-message", Some("answer-u1")),
        ] {
            for relay in relays() {
                let is_relayed = relay.is_some();
                let [first, second] = refused_at_first(refusal, relay);
                text(first.post("/api/ui", &sending("Hi", "submit-message", None)).await).await;
                // The relay gets the end.
                sleep(Duration::from_millis(200)).await;
                let again = second.post("/api/ui", &sending(said, trigger, replaced)).await;
                let (status, events) = (again.status(), text(again).await);
                assert!(events.contains("One."), "{refusal:?} {trigger} {is_relayed}: {status} {events}");
                assert_eq!(first.texts().await, [said, "One."], "{refusal:?} {trigger} {is_relayed}");
            }
        }
    }
}

/// So does the same request.
#[tokio::test(start_paused = true)]
async fn turn_refused_outside_memory_is_sent_again() {
    for refusal in REFUSALS {
        for relay in relays() {
            let is_relayed = relay.is_some();
            let [first, second] = refused_at_first(refusal, relay);
            let asking = sending("Hi", "submit-message", None);
            text(first.post("/api/ui", &asking).await).await;
            sleep(Duration::from_millis(200)).await;
            for setting in [&second, &first] {
                let events = text(setting.post("/api/ui", &asking).await).await;
                assert!(events.contains("One."), "{refusal:?} {is_relayed}: {events}");
            }
            assert_eq!(first.model.calls(), 1, "{refusal:?} {is_relayed}");
        }
    }
}

/// A failure that invites a retry is not the answer to the retry, also if memory has the message already.
#[tokio::test(start_paused = true)]
async fn invited_retry_begins_the_turn_again() {
    let limited = ErrorKind::RateLimited { retry_after: Some(Duration::from_millis(200)) };
    let conflict = ErrorKind::StoreConflict { current: 3 };
    for kind in [limited, ErrorKind::Store, conflict, ErrorKind::Fenced] {
        for path in ["/v1/chat/completions", "/v1/responses", "/v1/messages"] {
            let failing = || Answer::refused(Error::new(kind, "canary"));
            let answer = || Answer::from_text("One.");
            let model = ScriptedModel::new([failing(), answer(), failing(), answer()]);
            let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
            let client = ChatClient::builder(model.clone()).advisor(memory.clone()).build().unwrap();
            for relay in relays() {
                let conversation = relay.as_ref().map_or("plain", |_| "relayed");
                let servers = processes(&client, &memory, relay);
                let [first, second] = servers.map(|server| Setting { server, model: model.clone() });
                let ask = || {
                    let request = post(path).header("idempotency-key", "k1");
                    request.header("x-conversation-id", conversation).body(asking()).unwrap()
                };
                let failed = first.send(ask()).await;
                assert!(is_repeated(&failed), "{path} {kind:?}");
                assert_eq!(failed.headers().contains_key("retry-after"), kind == limited, "{path}");
                sleep(Duration::from_millis(200)).await;
                for setting in [&second, &first] {
                    let again = text(setting.send(ask()).await).await;
                    assert!(again.contains("One."), "{path} {kind:?} {conversation}: {again}");
                }
                let read = json_of(second.get(&format!("/api/conversations/{conversation}")).await).await;
                assert_eq!(read["messages"].as_array().unwrap().len(), 2, "{path} {kind:?}: {read}");
            }
            assert_eq!(model.calls(), 4, "{path} {kind:?}");
        }
    }
}

fn asking() -> Body {
    json!({"messages": [{"role": "user", "content": "Hi"}], "input": "Hi"}).to_string().into()
}

/// An edit that has failed is sent again as a further turn. While it runs, or has an answer, it is the same turn.
#[tokio::test]
async fn failed_edit_is_sent_again() {
    let failing = Answer::refused(Error::new(ErrorKind::Connection, "canary"));
    let answers = [Answer::from_text("One."), failing, Answer::from_text("Two.")];
    let setting = setting(answers);
    text(setting.post("/api/ui", &sending("Hi", "submit-message", None)).await).await;
    let edited = sending("Why?", "submit-message", Some("u1"));
    assert_eq!(setting.post("/api/ui", &edited).await.status(), StatusCode::BAD_GATEWAY);
    for _ in 0..2 {
        assert!(text(setting.post("/api/ui", &edited).await).await.contains("Two."));
    }
    assert_eq!(setting.texts().await, ["Why?", "Two."]);
    assert_eq!(setting.model.calls(), 3);
}
