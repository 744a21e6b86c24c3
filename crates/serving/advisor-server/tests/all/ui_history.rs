//! Chats of the AI SDK that are loaded again.

use std::sync::atomic::Ordering;

use advisor_core::{ConversationKey, Error, ErrorKind, Media, Message, TurnId};
use advisor_testkit::{Answer, Gate, ScriptedModel};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use chat_memory_advisor::InMemoryStore;
use chat_memory_advisor::store::{Batch, BatchKey, ConversationStore, NewEntry, Version};
use serde_json::{Value, json};

use crate::approvals::{open_till, pays, results, start, till};
use crate::setting::{Setting, json_of, refused, setting, setting_over, text, until, with_tokens};

async fn load(setting: &Setting) -> Value {
    json_of(setting.get("/api/ui/c1").await).await
}

async fn send(setting: &Setting, message: &Value) -> String {
    let body = json!({"id": "c1", "messages": [message], "trigger": "submit-message"});
    text(setting.post("/api/ui", &body).await).await
}

async fn say(setting: &Setting, id: &str, said: &str) -> String {
    send(setting, &json!({"id": id, "role": "user", "parts": [{"type": "text", "text": said}]})).await
}

/// Returns the values of a field of the events of a type.
pub(crate) fn field(stream: &str, kind: &str, name: &str) -> Vec<String> {
    let lines = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of_kind = events.filter(|event| event["type"] == kind);
    of_kind.filter_map(|event| Some(event[name].as_str()?.to_owned())).collect()
}

/// Returns the last message with the answers of a person to its requests.
fn decided(loaded: &Value, verdicts: &[bool]) -> Value {
    let mut message = loaded["messages"].as_array().unwrap().last().unwrap().clone();
    let parts = message["parts"].as_array_mut().unwrap().iter_mut();
    let asked = parts.filter(|part| part["state"] == "approval-requested");
    let mut decided = 0;
    for (part, approved) in asked.zip(verdicts) {
        part["state"] = "approval-responded".into();
        part["approval"]["approved"] = (*approved).into();
        decided += 1;
    }
    assert_eq!(decided, verdicts.len());
    message
}

fn states(message: &Value) -> Vec<&str> {
    message["parts"].as_array().unwrap().iter().filter_map(|part| part["state"].as_str()).collect()
}

fn tool(state: &str, id: &str, name: &str, more: &Value) -> Value {
    let mut part = json!({"type": "dynamic-tool", "toolName": name, "toolCallId": id, "state": state});
    part.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    part
}

#[tokio::test]
async fn ui_messages_are_those_of_the_stream() {
    let calls = || {
        let begun = Answer::new().reasoning("Hm.").text("I look.");
        begun.call("t1", "weather", r#"{"city":"Oslo"}"#).call("t2", "weather", "[no json").done()
    };
    let setting = setting([calls(), Answer::from_text("It is sunny.")]);
    let stream = say(&setting, "u1", "How is it?").await;
    let loaded = load(&setting).await;
    assert_eq!((&loaded["running"], &loaded["before"]), (&Value::Null, &Value::Null));
    let answer = &loaded["messages"][1];
    let mut refused = tool("output-error", "t2", "weather", &json!({"input": "[no json"}));
    refused["errorText"] = answer["parts"][4]["errorText"].clone();
    assert_eq!(field(&stream, "tool-input-error", "errorText"), [refused["errorText"].as_str().unwrap()]);
    let done = |text: &str| json!({"type": "text", "text": text, "state": "done"});
    let parts = json!([
        {"type": "step-start"},
        {"type": "reasoning", "id": "1.0", "text": "Hm.", "state": "done"},
        done("I look."),
        tool("output-available", "t1", "weather", &json!({"input": {"city": "Oslo"}, "output": "sunny"})),
        refused,
        {"type": "step-start"},
        done("It is sunny."),
    ]);
    let id = field(&stream, "start", "messageId").remove(0);
    assert_eq!(*answer, json!({"id": id, "role": "assistant", "parts": parts}));
    let said = json!([{"type": "text", "text": "How is it?"}]);
    assert_eq!(loaded["messages"][0], json!({"id": "u1", "role": "user", "parts": said}));
}

/// A page that is loaded again asks for the approvals that the stream has asked for, and takes the answers.
#[tokio::test]
async fn law_t6_ui_loaded_approval_is_that_of_the_stream() {
    let again = Answer::from_calls([("c1", "pay", r#"{"cents":3}"#)]);
    let before = open_till([pays(), again, Answer::from_text("Done.")]);
    let stream = say(&before.setting, "u1", "Pay.").await;
    let till = before.restarted();
    let asked = |loaded: &Value| {
        let parts = loaded["messages"][1]["parts"].as_array().unwrap().clone();
        let asked = parts.into_iter().filter(|part| part["state"] == "approval-requested");
        asked.map(|part| part["approval"]["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let loaded = load(&till.setting).await;
    assert_eq!(asked(&loaded), field(&stream, "tool-approval-request", "approvalId"));
    assert_eq!(asked(&loaded).len(), 2);
    let stream = send(&till.setting, &decided(&loaded, &[true, false])).await;
    let till = till.restarted();
    let loaded = load(&till.setting).await;
    assert_eq!(loaded["messages"].as_array().unwrap().len(), 2);
    assert_eq!(asked(&loaded), field(&stream, "tool-approval-request", "approvalId"));
    let answer = &loaded["messages"][1];
    assert_eq!(states(answer).split_last().unwrap().1, ["output-available", "output-denied"].as_slice());
    let approvals = [&answer["parts"][1]["approval"], &answer["parts"][2]["approval"]];
    assert_eq!(approvals.map(|approval| approval["approved"].as_bool()), [Some(true), Some(false)]);
    let stream = send(&till.setting, &decided(&loaded, &[true])).await;
    assert!(stream.contains("Done."), "{stream}");
    assert_eq!(till.paid.load(Ordering::SeqCst), 2);
    let loaded = load(&till.setting).await;
    let parts = loaded["messages"][1]["parts"].as_array().unwrap();
    let ids: Vec<_> = parts.iter().filter_map(|part| part["toolCallId"].as_str()).collect();
    assert!(ids[2].starts_with("c1-") && ids[..2] == ["c1", "c2"], "{ids:?}");
    assert_eq!(parts.last().unwrap()["text"], "Done.");
}

/// The messages have all calls, also those of rounds that the stream does not show. A repeated id is numbered then.
#[tokio::test]
async fn law_t6_ui_loaded_approval_is_of_its_round() {
    let till = open_till([
        Answer::from_calls([("c1", "look", "{}")]),
        Answer::from_calls([("c1", "pay", r#"{"cents":1}"#)]),
        Answer::from_text("Done."),
    ]);
    say(&till.setting, "u1", "Pay.").await;
    let loaded = load(&till.setting).await;
    assert_eq!(states(&loaded["messages"][1]), ["output-available", "approval-requested"]);
    let stream = send(&till.setting, &decided(&loaded, &[true])).await;
    assert_eq!(field(&stream, "tool-output-available", "toolCallId"), ["c1_2"]);
    assert_eq!(till.paid.load(Ordering::SeqCst), 1);
    let ended = load(&till.setting).await;
    assert_eq!(states(&ended["messages"][1]), ["output-available", "output-available", "done"]);
}

/// A call that ran or was refused at once, beside one that waits, has no decision of a person.
#[tokio::test]
async fn ui_history_has_no_decision_that_nobody_made() {
    let calls = [("c1", "look", "{}"), ("c2", "pay", r#"{"cents":1}"#), ("c3", "pay", r#"{"cents":13}"#)];
    let till = open_till([Answer::from_calls(calls), Answer::from_text("Done.")]);
    say(&till.setting, "u1", "Pay.").await;
    let asking = load(&till.setting).await;
    send(&till.setting, &decided(&asking, &[true])).await;
    let loaded = load(&till.setting).await;
    let states = states(&loaded["messages"][1]);
    assert_eq!(states, ["output-available", "output-available", "output-error", "done"]);
    let [asking, loaded] = [&asking, &loaded].map(|loaded| &loaded["messages"][1]["parts"]);
    assert_eq!((&loaded[1], &loaded[3]), (&asking[1], &asking[3]));
    assert_eq!((&loaded[1]["approval"], &loaded[2]["approval"]["approved"]), (&Value::Null, &json!(true)));
}

/// Clients refuse a denial without an approval, and a server whose users no longer decide asks for none.
#[tokio::test]
async fn ui_denial_without_approval_is_an_error() {
    let closed = till([Answer::from_calls([("c1", "pay", r#"{"cents":1}"#)]), Answer::from_text("Done.")]);
    let open = closed.restarted();
    say(&open.setting, "u1", "Pay.").await;
    send(&open.setting, &decided(&load(&open.setting).await, &[false])).await;
    let parts_of = |loaded: &Value| loaded["messages"][1]["parts"][1].clone();
    let denied = parts_of(&load(&open.setting).await);
    assert_eq!((&denied["state"], &denied["approval"]["approved"]), (&json!("output-denied"), &json!(false)));
    let refused = json!({"input": {"cents": 1}, "errorText": "the call was denied"});
    let loaded = load(&closed.setting).await;
    assert_eq!(parts_of(&loaded), tool("output-error", "c1", "pay", &refused));
}

/// The conversation goes on without calls that nobody decides about, and a page that is loaded again asks for none of them.
#[tokio::test]
async fn ui_calls_without_decision_have_ended() {
    let till = open_till([pays(), Answer::from_text("Well.")]);
    say(&till.setting, "u1", "Pay.").await;
    say(&till.setting, "u2", "Never mind.").await;
    let loaded = load(&till.setting).await;
    assert_eq!(states(&loaded["messages"][1]), ["output-error", "output-error"]);
    assert_eq!(loaded["messages"][1]["parts"].as_array().unwrap().len(), 3, "memory's text is for the model");
    assert_eq!(loaded["messages"][1]["parts"][1]["approval"], Value::Null);
    assert_eq!(loaded["messages"].as_array().unwrap().len(), 4);
}

/// Decisions over another route end the calls in the message that has them.
#[tokio::test]
async fn ui_history_has_decisions_of_other_routes() {
    let till = open_till([Answer::from_calls([("c1", "pay", r#"{"cents":1}"#)]), Answer::from_text("Done.")]);
    say(&till.setting, "u1", "Pay.").await;
    let waiting = till.setting.read().await["waiting"][0].clone();
    let decision = json!({"key": waiting["key"], "tool": "pay", "arguments": waiting["arguments"], "verdict": "approved"});
    let body = json!({"conversation": "c1", "turn": "d1", "decisions": [decision]});
    text(till.setting.post("/api/chat", &body).await).await;
    let loaded = load(&till.setting).await;
    assert_eq!(loaded["messages"][1]["parts"][1]["output"], "paid 1");
    assert_eq!(loaded["messages"][2]["id"], "answer-d1");
    assert_eq!(loaded["messages"][2]["parts"][1]["text"], "Done.");
}

/// A call that was started and is lost still asks: the answer lets the model verify it.
#[tokio::test]
async fn law_t5_ui_loaded_call_that_is_lost_is_not_run() {
    let till =
        open_till([Answer::from_calls([("c1", "pay", r#"{"cents":1}"#)]), Answer::from_text("I check.")]);
    say(&till.setting, "u1", "Pay.").await;
    start(&till).await;
    let loaded = load(&till.setting).await;
    let stream = send(&till.setting, &decided(&loaded, &[true])).await;
    assert!(stream.contains("I check."), "{stream}");
    assert_eq!(field(&stream, "tool-output-error", "toolCallId"), ["c1"]);
    assert!(results(&till)[0].contains("verify"), "{:?}", results(&till));
    assert_eq!(till.paid.load(Ordering::SeqCst), 0);
    assert_eq!(states(&load(&till.setting).await["messages"][1]), ["output-error", "done"]);
}

#[tokio::test]
async fn ui_history_of_a_running_turn_ends_with_its_question() {
    let gate = Gate::new();
    let slow = Answer::new().text("It is ").gate(&gate).text("sunny.").done();
    let setting = setting([Answer::from_text("Hello."), slow]);
    say(&setting, "u1", "Hi.").await;
    let body = json!({"id": "c1", "messages": [{"id": "u2", "role": "user", "parts": [{"type": "text", "text": "How is it?"}]}]});
    let (_, body) = until(setting.post("/api/ui", &body).await, "It is").await;
    let loaded = load(&setting).await;
    assert_eq!(loaded["running"], "u2");
    let ids: Vec<_> = loaded["messages"].as_array().unwrap().iter().map(|message| &message["id"]).collect();
    assert_eq!(ids, ["u1", "answer-u1", "u2"]);
    let joined = setting.get("/api/ui/c1/stream").await;
    gate.release();
    assert!(text(joined).await.contains("sunny."));
    drop(body);
    let loaded = load(&setting).await;
    assert_eq!((&loaded["running"], &loaded["messages"][3]["id"]), (&Value::Null, &json!("answer-u2")));
}

/// An answer that broke off has its text and says so, without the words that memory adds for the model.
#[tokio::test]
async fn ui_history_names_answers_that_are_not_whole() {
    let broken = || Error::new(ErrorKind::Connection, "canary");
    let cut = Answer::new().text("It is").error(broken());
    let setting = setting([cut, Answer::refused(broken())]);
    for id in ["u1", "u2"] {
        say(&setting, id, "How is it?").await;
    }
    let loaded = load(&setting).await;
    let messages = loaded["messages"].as_array().unwrap();
    let kinds = |message: &Value| {
        let parts = message["parts"].as_array().unwrap().iter();
        parts.map(|part| part["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(kinds(&messages[1]), "step-start text data-incomplete");
    assert_eq!((&messages[1]["parts"][1]["text"], messages.len()), (&json!("It is"), 4));
    assert_eq!(messages[1]["parts"][2]["data"]["reason"], "interrupted");
    assert_eq!(kinds(&messages[3]), "data-incomplete");
}

#[tokio::test]
async fn history_has_files_and_no_hidden_messages() {
    let store = InMemoryStore::new();
    let turn = TurnId::new("t1").unwrap();
    let png = Media::from_bytes("image/png", &b"abc"[..]).with_name("a.png");
    let said = Message::user_parts(vec!["Look:".into(), advisor_core::Part::Image(png)]);
    let messages = [Message::user("a note of the program").hidden(), said];
    let entries = messages.map(|message| NewEntry::new(turn.clone(), message.into()));
    let batch = Batch::new(BatchKey::for_input(turn), entries.to_vec());
    store.append(&ConversationKey::new("c1").unwrap(), Version::EMPTY, batch).await.unwrap();
    let setting = setting_over(store, ScriptedModel::new([]));
    let file = json!({"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,YWJj", "filename": "a.png"});
    let parts = json!([{"type": "text", "text": "Look:"}, file]);
    let loaded = load(&setting).await;
    assert_eq!(loaded["messages"][0], json!({"id": "t1", "role": "user", "parts": parts}));
    assert_eq!(setting.texts().await[0], "Look:");
}

#[tokio::test]
async fn ui_history_is_read_in_pages() {
    let setting = setting((1..=4).map(|_| Answer::from_text("x".repeat(1_000))));
    let setting = setting.limited(|limits| limits.page_bytes = 4_000);
    for id in ["u1", "u2", "u3", "u4"] {
        say(&setting, id, "More.").await;
    }
    for query in ["?", "?limit=1&"] {
        let (mut ids, mut path) = (Vec::new(), Some(format!("/api/ui/c1{query}")));
        while let Some(page) = path {
            let loaded = json_of(setting.get(&page).await).await;
            let messages = loaded["messages"].as_array().unwrap().clone();
            assert!(messages.len() < 8, "the page is not bounded");
            ids.splice(0..0, messages.into_iter().map(|message| message["id"].clone()));
            path = loaded["before"].as_str().map(|before| format!("/api/ui/c1{query}before={before}"));
        }
        let whole = ["u1", "answer-u1", "u2", "answer-u2", "u3", "answer-u3", "u4", "answer-u4"];
        assert_eq!(ids, whole, "{query}");
    }
}

#[tokio::test]
async fn ui_history_is_refused_like_a_conversation() {
    let setting = setting([Answer::from_text("Hello.")]);
    say(&setting, "u1", "Hi.").await;
    for (path, status) in [
        ("/api/ui/unknown", StatusCode::NOT_FOUND),
        ("/api/ui/c1?before=999", StatusCode::NOT_FOUND),
        ("/api/ui/c1?limit=0", StatusCode::BAD_REQUEST),
        ("/api/ui/c1?view=page", StatusCode::BAD_REQUEST),
        ("/api/ui/a%00b", StatusCode::BAD_REQUEST),
    ] {
        refused(setting.get(path).await, status).await;
    }
    let setting = with_tokens(setting);
    refused(setting.get("/api/ui/c1").await, StatusCode::UNAUTHORIZED).await;
    let request = Request::get("/api/ui/c1").header("authorization", "Bearer the-token-of-bob");
    refused(setting.send(request.body(Body::empty()).unwrap()).await, StatusCode::NOT_FOUND).await;
}
