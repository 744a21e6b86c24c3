//! The page's protocol: one turn, repeated requests, resumption, stops and failures.

use std::time::Duration;

use advisor_core::{Delta, DeltaKind, Error, ErrorKind};
use advisor_sse::Frame;
use advisor_testkit::{Answer, Gate};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::relay::processes::{joining, reading};
use crate::setting::{json_of, refused, setting, text, until};
use crate::validate;

fn asking(text: &str) -> Value {
    json!({"message": text, "conversation": "c1"})
}

#[tokio::test]
async fn turn_streams_text_and_tools_and_is_remembered() {
    let call = Answer::new().text("Let me look.").call("t1", "weather", "{}").done();
    let setting = setting([call, Answer::from_text("It is sunny."), Answer::from_text("Yes.")]);
    let response = setting.post("/api/chat", &asking("How is it?")).await;
    assert_eq!(
        (response.status(), &response.headers()["content-type"]),
        (StatusCode::OK, &"text/event-stream".parse().unwrap())
    );
    assert_eq!(response.headers()["x-conversation-id"], "c1");
    let frames = Frame::read_all(&text(response).await);
    assert_eq!(validate::chat_events(&frames), Ok(()));
    let kinds: Vec<_> =
        frames.iter().filter_map(|frame| Some(frame.json()?["type"].as_str()?.to_owned())).collect();
    assert_eq!(kinds, ["content", "tool_call_start", "tool_call_end", "content"]);
    text(setting.post("/api/chat", &asking("Really?")).await).await;
    assert_eq!(setting.model.prompts()[2].messages.len(), 5, "the second turn has the first one before it");
}

#[tokio::test]
async fn new_conversation_gets_an_id() {
    let setting = setting([Answer::from_text("Hi.")]);
    let response = setting.post("/api/chat", &json!({"message": "Hello"})).await;
    let id = response.headers()["x-conversation-id"].to_str().unwrap().to_owned();
    text(response).await;
    let read = json_of(setting.get(&format!("/api/conversations/{id}")).await).await;
    assert_eq!(read["messages"][1]["text"], "Hi.");
}

#[tokio::test]
async fn same_turn_twice_is_answered_once() {
    let setting = setting([Answer::from_text("Once.")]);
    let body = json!({"message": "How is it?", "conversation": "c1", "turn": "t1"});
    let first = text(setting.post("/api/chat", &body).await).await;
    assert_eq!(text(setting.post("/api/chat", &body).await).await, first);
    assert_eq!(setting.model.calls(), 1);
    let other = json!({"message": "Something else", "conversation": "c1", "turn": "t1"});
    let code = refused(setting.post("/api/chat", &other).await, StatusCode::UNPROCESSABLE_ENTITY).await;
    assert_eq!(code, "turn_id_reused");
}

#[tokio::test]
async fn client_that_went_away_joins_again_behind_its_last_event() {
    let gate = Gate::new();
    let setting = setting([Answer::new().text("It is ").gate(&gate).text("sunny.").done()]);
    let response = setting.post("/api/chat", &asking("How is it?")).await;
    let (shown, body) = until(response, "It is ").await;
    drop(body);
    let last = Frame::read_all(&shown).pop().unwrap().id.unwrap();
    let resumed = setting.send(joining(Some(&last))).await;
    gate.release();
    let rest = text(resumed).await;
    assert!(rest.contains("sunny.") && !rest.contains("It is "), "{rest}");
    assert!(rest.ends_with("data: [DONE]\n\n"));
    assert_eq!(
        setting.send(joining(Some(&last))).await.status(),
        StatusCode::NO_CONTENT,
        "nothing runs any more"
    );
}

/// An `EventSource` sends nothing but the last id that it has read.
#[tokio::test]
async fn last_event_of_an_earlier_turn_skips_nothing() {
    let gate = Gate::new();
    let late = Answer::new().text("Two.").gate(&gate).text(" Late.").done();
    let setting = setting([Answer::from_text("It is one long answer."), late]);
    let last = Frame::read_all(&text(setting.post("/api/chat", &asking("One?")).await).await).pop().unwrap();
    let last = last.id.unwrap();
    let (shown, body) = until(setting.post("/api/chat", &asking("Two?")).await, "Two.").await;
    let from_beginning = setting.send(joining(Some(&last))).await;
    let behind = setting.send(joining(Frame::read_all(&shown).pop().unwrap().id.as_deref())).await;
    gate.release();
    drop(body);
    let from_beginning = text(from_beginning).await;
    assert!(from_beginning.contains("Two.") && from_beginning.contains("Late."), "{from_beginning}");
    let behind = text(behind).await;
    assert!(!behind.contains("Two.") && behind.contains("Late."), "{behind}");
}

#[tokio::test]
async fn ended_turn_is_read_again_by_its_id() {
    let setting = setting([Answer::from_text("It is sunny.")]);
    let response = setting.post("/api/chat", &asking("How is it?")).await;
    let turn = response.headers()["x-turn-id"].clone();
    let whole = text(response).await;
    let request = Request::get("/api/conversations/c1/stream").header("x-turn-id", turn);
    assert_eq!(text(setting.send(request.body(Body::empty()).unwrap()).await).await, whole);
}

#[tokio::test]
async fn law_k2_stopped_turn_keeps_its_text() {
    // On the second route, a disconnect would stop the turn and let it run again, but it was stopped before.
    for path in ["/api/chat", "/api/chunks"] {
        let setting = setting([Answer::new().text("It is").hang()]);
        let ask = json!({"message": "How is it?", "conversation": "c1", "turn": "t1"});
        let (_, body) = until(setting.post(path, &ask).await, "It is").await;
        setting.stop().await;
        drop(body);
        assert!(setting.texts().await[1].starts_with("It is"), "{path}");
        assert!(text(setting.post(path, &ask).await).await.contains("cancelled"), "{path}");
        assert_eq!(setting.model.calls(), 1, "{path}");
    }
}

#[tokio::test]
async fn law_r1_kept_chunks_are_bounded_in_bytes() {
    let long = || (0..9).fold(Answer::new(), |answer, _| answer.text("x".repeat(10_000))).done();
    for (bytes, status) in [(25_000, StatusCode::NOT_FOUND), (100_000, StatusCode::OK)] {
        let setting = setting([long()]).limited(|limits| limits.kept_bytes = bytes);
        let ask = json!({"message": "How is it?", "conversation": "c1", "turn": "t1"});
        text(setting.post("/api/chat", &ask).await).await;
        assert_eq!(setting.send(reading()).await.status(), status, "{bytes}");
    }
}

/// Clients wait for whole seconds, and not for less than the provider demands.
#[tokio::test]
async fn retry_after_is_in_seconds_rounded_up() {
    for (millis, seconds) in
        [(Some(1500), Some("2")), (Some(2000), Some("2")), (Some(1), Some("1")), (None, None)]
    {
        let retry_after = millis.map(Duration::from_millis);
        let limited = Error::new(ErrorKind::RateLimited { retry_after }, "canary");
        let setting = setting([Answer::refused(limited)]);
        let response = setting.post("/api/chat", &asking("How is it?")).await;
        let header = response.headers().get("retry-after").map(|value| value.to_str().unwrap());
        assert_eq!((response.status(), header), (StatusCode::TOO_MANY_REQUESTS, seconds), "{millis:?}");
    }
    let setting = setting([]);
    setting.server.stop(Duration::ZERO).await.unwrap();
    let response = setting.post("/api/chat", &asking("How is it?")).await;
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(refused(response, StatusCode::SERVICE_UNAVAILABLE).await, "stopping");
}

#[tokio::test]
async fn failure_within_the_answer_is_an_event() {
    let setting = setting([Answer::new().text("It is").error(Error::new(ErrorKind::Connection, "canary"))]);
    let body = text(setting.post("/api/chat", &asking("How is it?")).await).await;
    assert!(body.contains("It is") && body.contains("the answer broke off") && !body.contains("canary"));
    assert_eq!(validate::chat_events(&Frame::read_all(&body)), Ok(()));
}

/// A model that takes long to begin does not delay the headers for long.
#[tokio::test(start_paused = true)]
async fn headers_do_not_wait_for_the_first_text() {
    let setting = setting([Answer::new().hang()]);
    assert_eq!(setting.post("/api/chat", &asking("How is it?")).await.status(), StatusCode::OK);
}

/// An edited message replaces its turn and all behind it. The old ones stay in the store.
#[tokio::test]
async fn turn_is_replaced_by_an_edited_one() {
    let setting = setting(["One.", "Two.", "Three."].map(Answer::from_text));
    for (turn, message) in [("t1", "First?"), ("t2", "Second?")] {
        let body = json!({"message": message, "conversation": "c1", "turn": turn});
        text(setting.post("/api/chat", &body).await).await;
    }
    let body = json!({"message": "Other?", "conversation": "c1", "replaces": "t1"});
    text(setting.post("/api/chat", &body).await).await;
    assert_eq!(setting.texts().await, ["Other?", "Three."]);
    assert_eq!(setting.model.prompts()[2].messages.len(), 1, "nothing of the replaced turns is sent");
    let unknown = json!({"message": "Other?", "conversation": "c1", "replaces": "t9"});
    refused(setting.post("/api/chat", &unknown).await, StatusCode::NOT_FOUND).await;
}

/// The page shows reasoning apart from the answer, and other clients of the route do not see it.
#[tokio::test]
async fn reasoning_is_for_the_page_only_and_no_part_of_the_text() {
    let answer = || {
        let answer = Answer::new().reasoning("Hm.").text("Let me look.");
        [answer.call("t1", "weather", "{}").done(), Answer::from_text("It is sunny.")]
    };
    let plain = setting(answer());
    let frames = text(plain.post("/api/chat", &asking("How is it?")).await).await;
    assert!(!frames.contains("Hm."), "{frames}");
    assert_eq!(plain.read().await["messages"][1].get("parts"), None);

    let page = setting(answer());
    let response = page.post("/api/chat?view=page", &asking("How is it?")).await;
    let turn = response.headers()["x-turn-id"].clone();
    let frames = text(response).await;
    assert!(frames.contains(r#"{"type":"reasoning","content":"Hm.","block":"1.0"}"#), "{frames}");
    assert!(frames.contains(r#"{"type":"content","content":"Let me look.","block":"1.1"}"#), "{frames}");
    let again = Request::get("/api/conversations/c1/stream?view=page").header("x-turn-id", turn);
    assert_eq!(text(page.send(again.body(Body::empty()).unwrap()).await).await, frames);
    let read = json_of(page.get("/api/conversations/c1?view=page").await).await;
    let kinds: Vec<_> =
        read["messages"][1]["parts"].as_array().unwrap().iter().map(|part| part["type"].clone()).collect();
    assert_eq!(kinds, ["reasoning", "text", "call"]);
    assert_eq!(read["messages"][1]["text"], "Let me look.");
}

/// Finished pieces of Markdown come as elements while the text streams, the rest at its end, and all of it again later.
#[tokio::test]
async fn markdown_is_rendered_for_the_page() {
    let setting = setting([Answer::new().text("One\n\n*tw").text("o*\n\nthree").done()]);
    let frames = Frame::read_all(&text(setting.post("/api/chat?view=page", &asking("How?")).await).await);
    let events: Vec<_> = frames.iter().filter_map(Frame::json).collect();
    let rendered: Vec<_> = events.iter().filter(|event| event["type"] == "rendered").collect();
    let paragraph = |child: Value| json!({"tag": "paragraph", "children": [child]});
    let two = paragraph(json!({"tag": "emphasis", "children": ["two"]}));
    assert_eq!(rendered[0]["nodes"], json!([paragraph(json!("One"))]));
    assert_eq!(rendered.last().unwrap()["nodes"], json!([two, paragraph(json!("three"))]));
    assert!(rendered.iter().all(|event| event["block"] == "1.0"));
    let read = json_of(setting.get("/api/conversations/c1?view=page").await).await;
    let nodes = json!([paragraph(json!("One")), two, paragraph(json!("three"))]);
    assert_eq!(read["messages"][1]["parts"][0]["nodes"], nodes);
}

/// A text that its provider cut, to attach a source or a signature, is one text, while it streams and later.
#[tokio::test]
async fn a_text_in_several_blocks_is_one_text_of_the_page() {
    let end = || Delta::from(DeltaKind::BlockEnd);
    let source = || Delta::from(DeltaKind::Citation(Box::default()));
    let answer = Answer::new().text("The *wo").delta(end()).text("rd* is ").delta(end()).delta(source());
    let answer = answer.text("split.\n\nTwo").reasoning("Hm.").text("Three").done();
    let setting = setting([answer]);
    let frames = Frame::read_all(&text(setting.post("/api/chat?view=page", &asking("How?")).await).await);
    let events: Vec<_> = frames.iter().filter_map(Frame::json).collect();
    let of_type =
        |kind: &str| events.iter().filter(|event| event["type"] == *kind).cloned().collect::<Vec<_>>();
    let blocks: Vec<_> = of_type("content").iter().map(|event| event["block"].clone()).collect();
    assert!(blocks[..3].iter().all(|block| *block == "1.0") && blocks[3] != "1.0", "{blocks:?}");
    let paragraph = |children: Value| json!({"tag": "paragraph", "children": children});
    let word = json!({"tag": "emphasis", "children": ["word"]});
    let nodes = json!([paragraph(json!(["The ", word, " is split."])), paragraph(json!(["Two"]))]);
    let rendered = of_type("rendered");
    let first = rendered.iter().filter(|event| event["block"] == "1.0");
    let shown: Vec<_> = first.flat_map(|event| event["nodes"].as_array().unwrap().clone()).collect();
    assert_eq!(Value::Array(shown), nodes);
    let read = json_of(setting.get("/api/conversations/c1?view=page").await).await;
    let parts = read["messages"][1]["parts"].as_array().unwrap();
    assert_eq!(parts.iter().map(|part| &part["type"]).collect::<Vec<_>>(), ["text", "reasoning", "text"]);
    assert_eq!((&parts[0]["text"], &parts[0]["nodes"]), (&json!("The *word* is split.\n\nTwo"), &nodes));
}

#[tokio::test]
async fn markdown_of_a_text_that_breaks_off_is_rendered() {
    let error = Error::new(ErrorKind::Connection, "canary");
    let setting = setting([Answer::new().text("It *is*").error(error)]);
    let frames = text(setting.post("/api/chat?view=page", &asking("How?")).await).await;
    let rendered = frames.find(r#""type":"rendered""#).unwrap();
    assert!(rendered < frames.find(r#""type":"error""#).unwrap(), "{frames}");
}
