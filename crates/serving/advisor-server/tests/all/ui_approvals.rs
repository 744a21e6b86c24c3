//! Approvals of calls by clients of the AI SDK.

use std::sync::atomic::Ordering;

use advisor_testkit::Answer;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::approvals::{Till, open_till, pays, results};
use crate::setting::{text, told};

/// Sends the last message of a chat.
pub(crate) async fn send(till: &Till, message: &Value) -> axum::response::Response {
    let body = json!({"id": "c1", "messages": [message], "trigger": "submit-message"});
    till.setting.post("/api/ui", &body).await
}

fn events(stream: &str) -> Vec<Value> {
    let lines = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn of_type(stream: &str, kind: &str) -> Vec<Value> {
    events(stream).into_iter().filter(|event| event["type"] == kind).collect()
}

/// Asks the first question. Returns the ids of the requests for approvals.
pub(crate) async fn asked(till: &Till) -> Vec<String> {
    let message = json!({"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Pay."}]});
    approvals(&text(send(till, &message).await).await)
}

fn approvals(stream: &str) -> Vec<String> {
    let asked = of_type(stream, "tool-approval-request");
    asked.iter().map(|asked| asked["approvalId"].as_str().unwrap().to_owned()).collect()
}

/// Returns the part of an answered request, as `addToolApprovalResponse` writes it, without the input that it shows.
pub(crate) fn answered(call: &str, id: &str, approved: bool, reason: Option<&str>) -> Value {
    let mut approval = json!({"id": id, "approved": approved});
    if let Some(reason) = reason {
        approval["reason"] = reason.into();
    }
    json!({"type": "dynamic-tool", "toolName": "pay", "toolCallId": call, "state": "approval-responded",
        "approval": approval})
}

fn approved(call: &str, id: &str) -> Value {
    answered(call, id, true, None)
}

/// Returns the part of a call that has its result.
fn ended(tool: &str, call: &str, output: &Value) -> Value {
    json!({"type": "dynamic-tool", "toolName": tool, "toolCallId": call, "state": "output-available", "input": {},
        "output": output})
}

fn pay(cents: u32) -> Answer {
    Answer::from_calls([("c1", "pay", &*format!("{{\"cents\":{cents}}}"))])
}

pub(crate) fn continued(parts: &[Value]) -> Value {
    json!({"id": "answer-1", "role": "assistant", "parts": parts})
}

/// The client's message shows how decided calls end. Sent again, it is the same turn.
#[tokio::test]
async fn ui_clients_decide_about_calls() {
    let till = open_till([pays(), Answer::from_text("Done.")]);
    let asked = asked(&till).await;
    assert_eq!((asked.len(), asked[0].rsplit('.').next()), (2, Some("c1")));
    let message = continued(&[
        json!({"type": "step-start"}),
        approved("c1", &asked[0]),
        answered("c2", &asked[1], false, Some("too much")),
    ]);
    for _ in 0..2 {
        let stream = text(send(&till, &message).await).await;
        assert_eq!(events(&stream)[0]["messageId"], "answer-1");
        let ran =
            json!({"type": "tool-output-available", "toolCallId": "c1", "output": "paid 1", "dynamic": true});
        assert_eq!(events(&stream)[1..3], [ran, json!({"type": "tool-output-denied", "toolCallId": "c2"})]);
        assert!(stream.contains("Done."), "{stream}");
    }
    assert_eq!(results(&till), ["paid 1", "not started: too much"]);
    assert_eq!((till.paid.load(Ordering::SeqCst), till.setting.model.prompts().len()), (1, 2));
    // Another verdict is another input of the same turn.
    let other = continued(&[approved("c1", &asked[0]), approved("c2", &asked[1])]);
    assert_eq!(send(&till, &other).await.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(till.paid.load(Ordering::SeqCst), 1);
}

/// Each call needs a decision, and a decision its call. Until then, the calls wait.
#[tokio::test]
async fn ui_clients_decide_about_all_calls() {
    let till = open_till([pays(), Answer::from_text("Done.")]);
    let asked = asked(&till).await;
    let [one, two] = [approved("c1", &asked[0]), approved("c2", &asked[1])];
    let forged = approved("c2", &format!("x{}", asked[1]));
    let unknown = approved("c2", &asked[1].replace(".1.1.", ".1.7."));
    let other_call = approved("c2", &asked[1].replace(".c2", ".c1"));
    let denied = answered("c2", &asked[1], false, None);
    let unread = approved("c2", "c2");
    let result = ended("pay", "c1", &json!("paid"));
    let unprocessable = StatusCode::UNPROCESSABLE_ENTITY;
    for (parts, status) in [
        (vec![one.clone()], unprocessable),
        (vec![one.clone(), forged], unprocessable),
        (vec![one.clone(), unknown], unprocessable),
        (vec![one.clone(), other_call], unprocessable),
        (vec![one.clone(), denied.clone(), two.clone()], unprocessable),
        (vec![one.clone(), two.clone(), denied], unprocessable),
        (vec![one.clone(), unread], StatusCode::BAD_REQUEST),
        (vec![result], unprocessable),
        (vec![], unprocessable),
    ] {
        assert_eq!(send(&till, &continued(&parts)).await.status(), status, "{parts:?}");
    }
    assert_eq!(till.paid.load(Ordering::SeqCst), 0);
    assert!(text(send(&till, &continued(&[one, two])).await).await.contains("Done."));
    assert_eq!(till.paid.load(Ordering::SeqCst), 2);
}

/// A message with a call of the client and one that waits for a person continues with both.
#[tokio::test]
async fn ui_clients_answer_calls_of_both_sides() {
    let calls = Answer::from_calls([("c1", "pay", r#"{"cents":1}"#), ("c2", "place", "{}")]);
    let till = open_till([calls, Answer::from_text("Done.")]);
    let asked = asked(&till).await;
    assert_eq!(asked.len(), 1);
    let place = ended("place", "c2", &json!("Oslo"));
    // The result alone would drop the call that waits.
    let alone = send(&till, &continued(std::slice::from_ref(&place))).await;
    assert_eq!(alone.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let stream = text(send(&till, &continued(&[approved("c1", &asked[0]), place])).await).await;
    assert!(stream.contains("Done."), "{stream}");
    assert_eq!(results(&till), ["paid 1", "Oslo"]);
    // The client has its own result.
    let ends: Vec<_> =
        of_type(&stream, "tool-output-available").iter().map(|end| end["toolCallId"].clone()).collect();
    assert_eq!(ends, ["c1"]);
}

/// A guard may have changed the question on its way to memory, such as a number of a card.
#[tokio::test]
async fn ui_clients_decide_beside_a_question_that_memory_has_otherwise() {
    let till = open_till([pays(), Answer::from_text("Done.")]);
    let asked = asked(&till).await;
    let question = json!({"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Pay with 4111."}]});
    let answer = continued(&[approved("c1", &asked[0]), approved("c2", &asked[1])]);
    let body = json!({"id": "c1", "messages": [question, answer], "trigger": "submit-message"});
    let response = till.setting.post("/api/ui", &body).await;
    assert_eq!(response.status(), StatusCode::OK, "{}", text(response).await);
}

/// The list of the client has messages before these, so its first message or the one of the user is not the reason.
#[tokio::test]
async fn ui_refusal_of_a_continuation_says_what_is_missing() {
    let till = open_till([Answer::from_text("Hello.")]);
    asked(&till).await;
    let question = json!({"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Pay."}]});
    for (parts, reason) in [
        (Vec::new(), "nothing new"),
        (vec![ended("pay", "c9", &json!("paid"))], "a call or an answer of the list is not in memory"),
    ] {
        let messages = [question.clone(), continued(&parts)];
        let body = json!({"id": "c1", "messages": messages, "trigger": "submit-message"});
        let response = till.setting.post("/api/ui", &body).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{parts:?}");
        let refused = text(response).await;
        assert!(refused.contains(reason), "{refused}");
    }
}

/// A call of a later turn is another one, also if the model gives it the id of the earlier one.
#[tokio::test]
async fn ui_approval_is_bound_to_its_turn() {
    let till = open_till([pay(1), pay(900)]);
    let earlier = asked(&till).await;
    let message = json!({"id": "u2", "role": "user", "parts": [{"type": "text", "text": "More."}]});
    let stream = text(send(&till, &message).await).await;
    assert_eq!(of_type(&stream, "tool-approval-request").len(), 1);
    let late = send(&till, &continued(&[approved("c1", &earlier[0])])).await;
    assert_eq!(late.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(till.paid.load(Ordering::SeqCst), 0);
}

/// An approval of one sum in one conversation approves nothing in another one, also if the client reuses the id of the turn.
#[tokio::test]
async fn law_t6_ui_approval_is_of_one_conversation() {
    let till = open_till([pay(1), pay(900)]);
    let earlier = asked(&till).await;
    till.setting.delete().await;
    let later = asked(&till).await;
    assert_ne!(earlier, later);
    let forged = send(&till, &continued(&[approved("c1", &earlier[0])])).await;
    assert_eq!(forged.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(till.paid.load(Ordering::SeqCst), 0);
}

/// In a message with calls of several turns, an earlier result is none of a later call that the model has named the same.
#[tokio::test]
async fn law_t6_ui_result_is_of_the_last_call() {
    let till = open_till([
        pay(1),
        Answer::from_calls([("c1", "place", "{}"), ("c2", "pay", r#"{"cents":2}"#)]),
        Answer::from_text("Done."),
    ]);
    let first = asked(&till).await;
    let stream = text(send(&till, &continued(&[approved("c1", &first[0])])).await).await;
    let second = &of_type(&stream, "tool-approval-request")[0];
    let [second, paying] = ["approvalId", "toolCallId"].map(|field| second[field].as_str().unwrap());
    let part = |tool: &str, id: &str, output: &str| ended(tool, id, &json!(output));
    let decided = approved(paying, second);
    let place = of_type(&stream, "tool-input-available")[0]["toolCallId"].as_str().unwrap().to_owned();
    let waiting = json!({"type": "dynamic-tool", "toolName": "place", "toolCallId": place, "state": "input-available", "input": {}});
    let message = continued(&[part("pay", "c1", "paid 1"), waiting, decided.clone()]);
    assert_eq!(send(&till, &message).await.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let message = continued(&[part("pay", "c1", "paid 1"), part("place", &place, "Oslo"), decided]);
    assert!(text(send(&till, &message).await).await.contains("Done."));
    assert_eq!(results(&till), ["paid 1", "Oslo", "paid 2"]);
}

/// A client has one part per id: a call of a turn that continues the message has a unique id.
#[tokio::test]
async fn law_t6_ui_calls_of_one_message_have_own_ids() {
    let till = open_till([pay(1), pay(2), pay(3), Answer::from_text("Done.")]);
    let (mut ids, mut parts) = (vec!["c1".to_owned()], Vec::new());
    let mut approval = asked(&till).await.remove(0);
    for paid in 1..=3 {
        let id = ids.last().unwrap().clone();
        parts.push(approved(&id, &approval));
        let stream = text(send(&till, &continued(&parts)).await).await;
        let ended = &of_type(&stream, "tool-output-available")[0];
        assert_eq!([&ended["toolCallId"], &ended["output"]], [&json!(id), &json!(format!("paid {paid}"))]);
        // The same request has the same ids.
        assert_eq!(
            of_type(&text(send(&till, &continued(&parts)).await).await, "tool-approval-request"),
            of_type(&stream, "tool-approval-request")
        );
        *parts.last_mut().unwrap() = self::ended("pay", &id, &ended["output"]);
        let Some(next) = of_type(&stream, "tool-approval-request").pop() else { continue };
        assert_eq!(of_type(&stream, "tool-input-start")[0]["toolCallId"], next["toolCallId"]);
        let id = next["toolCallId"].as_str().unwrap().to_owned();
        assert!(id.starts_with("c1-") && !ids.contains(&id), "{id}");
        approval = next["approvalId"].as_str().unwrap().to_owned();
        ids.push(id);
    }
    assert_eq!((ids.len(), till.paid.load(Ordering::SeqCst)), (3, 3));
}

/// A model repeats the id of a call whose round the stream does not show.
#[tokio::test]
async fn law_t6_ui_approval_is_of_its_round() {
    let till = open_till([Answer::from_calls([("c1", "look", "{}")]), pay(1), Answer::from_text("Done.")]);
    let asked = asked(&till).await;
    let stream = text(send(&till, &continued(&[approved("c1", &asked[0])])).await).await;
    assert!(stream.contains("Done."), "{stream}");
    let ended = &of_type(&stream, "tool-output-available")[0];
    assert_eq!(asked[0].rsplit('.').next(), ended["toolCallId"].as_str());
}

/// An approval of calls that were asked about again, such as after an edit, decides nothing. That of the new ones does.
#[tokio::test]
async fn law_t6_ui_approval_is_of_its_branch() {
    for (trigger, named) in [("regenerate-message", "answer-u1"), ("submit-message", "u1")] {
        let till = open_till([pays(), pays(), Answer::from_text("Done.")]);
        let earlier = asked(&till).await;
        let message = json!({"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Pay."}]});
        let body = json!({"id": "c1", "messages": [message], "trigger": trigger, "messageId": named});
        let later = approvals(&text(till.setting.post("/api/ui", &body).await).await);
        let decided = |ids: &[String]| continued(&[approved("c1", &ids[0]), approved("c2", &ids[1])]);
        assert_eq!(send(&till, &decided(&earlier)).await.status(), StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(till.paid.load(Ordering::SeqCst), 0);
        assert!(text(send(&till, &decided(&later)).await).await.contains("Done."), "{trigger}");
        assert_eq!(till.paid.load(Ordering::SeqCst), 2);
    }
}

/// Another message is another turn.
#[tokio::test]
async fn refused_answers_of_the_ai_sdk_say_what_is_wrong() {
    let till = open_till([pays(), Answer::from_text("Done.")]);
    let ids = asked(&till).await;
    let both = |approved| {
        continued(&[answered("c1", &ids[0], approved, None), answered("c2", &ids[1], approved, None)])
    };
    assert!(text(send(&till, &both(true)).await).await.contains("Done."));
    let denied = told(send(&till, &both(false)).await, StatusCode::UNPROCESSABLE_ENTITY).await;
    assert!(denied.contains("other answers") && !denied.contains("id of the turn"), "{denied}");
    let mut elsewhere = both(true);
    elsewhere["id"] = json!("answer-7");
    let late = told(send(&till, &elsewhere).await, StatusCode::BAD_REQUEST).await;
    assert!(late.contains("its call is decided"), "{late}");
    assert_eq!(till.paid.load(Ordering::SeqCst), 2);
}
