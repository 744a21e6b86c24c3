//! Requests that clients repeat by themselves, without an id of the turn.

use advisor_core::{Error, ErrorKind, Message};
use advisor_testkit::{Answer, Gate};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::setting::{Setting, json_of, post, setting, text, until};

const PATHS: [&str; 3] = ["/v1/chat/completions", "/v1/responses", "/v1/messages"];

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// Returns a request in conversation `c1`, as its nth repeat.
fn request(messages: &[Value], path: &str, repeat: usize) -> Request<Body> {
    let body = json!({"messages": messages, "input": messages, "stream": true});
    let request = post(path).header("x-conversation-id", "c1").header("x-stainless-retry-count", repeat);
    request.body(Body::from(body.to_string())).unwrap()
}

async fn send(setting: &Setting, path: &str, messages: &[Value]) -> String {
    text(setting.send(request(messages, path, 0)).await).await
}

/// The client has lost its connection, or has not waited any longer.
#[tokio::test]
async fn turn_that_a_disconnect_has_stopped_continues() {
    for path in PATHS {
        let answers =
            [Answer::new().text("It is").hang(), Answer::new().text("It").hang(), Answer::from_text("Done.")];
        let setting = setting(answers);
        for repeat in 0..2 {
            let response = setting.send(request(&[user("A?")], path, repeat)).await;
            drop(until(response, "It").await.1);
        }
        assert!(send(&setting, path, &[user("A?")]).await.contains("Done."), "{path}");
        assert_eq!(setting.texts().await, ["A?", "Done."], "{path}");
    }
}

#[tokio::test]
async fn running_turn_is_joined() {
    for path in PATHS {
        let gate = Gate::new();
        let setting = setting([Answer::new().text("It is").gate(&gate).text(" sunny.").done()]);
        let (_, first) = until(setting.send(request(&[user("A?")], path, 0)).await, "It is").await;
        let second = setting.send(request(&[user("A?")], path, 1)).await;
        assert_eq!(second.status(), StatusCode::OK, "{path}");
        gate.release();
        assert!(text(second).await.contains("sunny."), "{path}");
        drop(first);
        assert_eq!(setting.texts().await, ["A?", "It is sunny."], "{path}");
        assert_eq!(setting.model.calls(), 1, "{path}");
    }
}

/// A failure is no answer to the repeat.
#[tokio::test]
async fn failed_turn_continues() {
    for path in PATHS {
        let failing = || Answer::refused(Error::new(ErrorKind::Connection, "canary"));
        let setting = setting([Answer::from_text("One."), failing(), failing(), Answer::from_text("Two.")]);
        let list = [user("A?"), json!({"role": "assistant", "content": "One."}), user("B?")];
        send(&setting, path, &list[..1]).await;
        for status in [StatusCode::BAD_GATEWAY, StatusCode::BAD_GATEWAY, StatusCode::OK] {
            let response = setting.send(request(&list, path, 0)).await;
            assert_eq!(response.status(), status, "{path}");
            text(response).await;
        }
        assert_eq!(setting.texts().await, ["A?", "One.", "B?", "Two."], "{path}");
        let sent: Vec<_> = setting.model.prompts()[3].messages.iter().map(Message::text).collect();
        assert_eq!(sent, ["A?", "One.", "B?"], "{path}");
    }
}

/// The answer was lost on its way: the client's history ends before it, or its header says that it tries again.
#[tokio::test]
async fn finished_turn_whose_answer_is_lost_is_answered_once() {
    for path in PATHS {
        let setting = setting(["One.", "Two."].map(Answer::from_text));
        send(&setting, path, &[user("A?")]).await;
        let again = text(setting.send(request(&[user("A?")], path, 1)).await).await;
        assert!(again.contains("One."), "{path}: {again}");
        let list = [user("A?"), json!({"role": "assistant", "content": "One."}), user("B?")];
        for _ in 0..2 {
            assert!(send(&setting, path, &list).await.contains("Two."), "{path}");
        }
        assert_eq!(setting.texts().await, ["A?", "One.", "B?", "Two."], "{path}");
        assert_eq!(setting.model.calls(), 2, "{path}");
    }
}

/// A user may say the same again.
#[tokio::test]
async fn same_message_after_its_answer_is_a_further_turn() {
    for path in PATHS {
        let setting = setting(["One.", "Two.", "Three."].map(Answer::from_text));
        send(&setting, path, &[user("Go on.")]).await;
        assert!(send(&setting, path, &[user("Go on.")]).await.contains("Two."), "{path}");
        let answer = |text: &str| json!({"role": "assistant", "content": text});
        let list = [user("Go on."), answer("One."), user("Go on."), answer("Two."), user("Go on.")];
        assert!(send(&setting, path, &list).await.contains("Three."), "{path}");
        assert_eq!(setting.texts().await.len(), 6, "{path}");
    }
}

/// The client has the beginning of the stopped answer, and so asks again. That request may be repeated, too.
#[tokio::test]
async fn same_message_after_a_stopped_answer_is_a_further_turn() {
    for path in PATHS {
        let gate = Gate::new();
        let done = Answer::new().text("Do").gate(&gate).text("ne.").done();
        let setting = setting([Answer::new().text("It is").hang(), done, Answer::from_text("Two.")]);
        drop(until(setting.send(request(&[user("A?")], path, 0)).await, "It is").await.1);
        let answer = |text: &str| json!({"role": "assistant", "content": text});
        let mut list = vec![user("A?"), answer("It is"), user("A?")];
        let (_, first) = until(setting.send(request(&list, path, 0)).await, "Do").await;
        let repeated = setting.send(request(&list, path, 1)).await;
        gate.release();
        assert!(text(repeated).await.contains("ne."), "{path}");
        drop(first);
        list.extend([answer("Done."), user("B?")]);
        assert!(send(&setting, path, &list).await.contains("Two."), "{path}");
        let texts = setting.texts().await;
        assert_eq!(
            (&texts[0], &texts[2..]),
            (&"A?".to_owned(), ["A?", "Done.", "B?", "Two."].map(String::from).as_slice()),
            "{path}"
        );
        assert_eq!(setting.model.calls(), 3, "{path}");
    }
}

/// With Responses, a further answer to the same response is a branch, as with OpenAI, unless it repeats the request.
#[tokio::test]
async fn previous_response_is_continued_once_by_a_repeat() {
    let setting = setting(["One.", "Two.", "Three."].map(Answer::from_text));
    let ask = async |text: &str, previous: Option<&Value>, repeat: usize| {
        let body = json!({"input": text, "previous_response_id": previous}).to_string();
        let request = post("/v1/responses").header("x-stainless-retry-count", repeat).body(Body::from(body));
        json_of(setting.send(request.unwrap()).await).await["id"].clone()
    };
    let first = ask("A?", None, 0).await;
    let second = ask("B?", Some(&first), 0).await;
    assert_eq!(ask("B?", Some(&first), 1).await, second);
    assert_eq!(setting.model.calls(), 2);
    assert_ne!(ask("B?", Some(&first), 0).await, second);
}
