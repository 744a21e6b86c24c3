//! Lists, reads and deletes conversations.

use advisor_testkit::Answer;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::setting::{json_of, setting, text, until};

#[tokio::test]
async fn conversation_is_read_and_deleted() {
    let call = Answer::new().reasoning("Hm.").call("t1", "weather", r#"{"city":"Oslo"}"#).done();
    let setting = setting([call, Answer::from_text("It is sunny.")]);
    text(setting.post("/api/chat", &json!({"message": "How is it?", "conversation": "c/1"})).await).await;
    let read = json_of(setting.get("/api/conversations/c%2F1").await).await;
    let turn = read["messages"][0]["turn"].as_str().unwrap();
    let expected = json!([
        {"role": "user", "text": "How is it?", "turn": turn},
        {
            "role": "assistant", "text": "", "reasoning": "Hm.",
            "calls": [{"id": "t1", "tool": "weather", "args": {"city": "Oslo"}}],
        },
        {"role": "tool", "id": "t1", "tool": "weather", "result": "sunny", "is_error": false},
        {"role": "assistant", "text": "It is sunny.", "reasoning": "", "calls": []},
    ]);
    assert_eq!(read["messages"], expected);
    let delete = Request::delete("/api/conversations/c%2F1").body(Body::empty()).unwrap();
    assert_eq!(setting.send(delete).await.status(), StatusCode::NO_CONTENT);
    assert_eq!(setting.get("/api/conversations/c%2F1").await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn conversations_are_listed_in_pages() {
    let setting = setting((0..101).map(|_| Answer::from_text("Hi.")));
    for number in 0..101 {
        let body = json!({"message": "Hello", "conversation": format!("c{number:03}")});
        text(setting.post("/api/chat", &body).await).await;
    }
    let first = json_of(setting.get("/api/conversations").await).await;
    assert_eq!((first["conversations"].as_array().unwrap().len(), &first["next"]), (100, &json!("c099")));
    let second = json_of(setting.get("/api/conversations?after=c099").await).await;
    assert_eq!(second, json!({"conversations": ["c100"], "next": null}));
}

/// A turn that runs is stopped first, so that it cannot write to a conversation that is gone.
#[tokio::test]
async fn running_turn_is_stopped_before_its_conversation_is_deleted() {
    let setting = setting([Answer::new().text("It is").hang()]);
    let asked = setting.post("/api/chat", &json!({"message": "How is it?", "conversation": "c1"})).await;
    let (_, body) = until(asked, "It is").await;
    let delete = Request::delete("/api/conversations/c1").body(Body::empty()).unwrap();
    assert_eq!(setting.send(delete).await.status(), StatusCode::NO_CONTENT);
    drop(body);
    assert_eq!(setting.get("/api/conversations/c1").await.status(), StatusCode::NOT_FOUND);
    assert_eq!(json_of(setting.get("/api/conversations").await).await["conversations"], json!([]));
}

#[tokio::test]
async fn deleted_conversation_has_no_turns() {
    let setting = setting([Answer::from_text("Before."), Answer::from_text("After.")]);
    let ask = json!({"message": "How is it?", "conversation": "c1", "turn": "t1"});
    assert!(text(setting.post("/api/chat", &ask).await).await.contains("Before."));
    let delete = Request::delete("/api/conversations/c1").body(Body::empty()).unwrap();
    assert_eq!(setting.send(delete).await.status(), StatusCode::NO_CONTENT);
    assert!(text(setting.post("/api/chat", &ask).await).await.contains("After."), "it is a new turn");
}

/// The page lists titles: the first words of the user.
#[tokio::test]
async fn page_lists_titles() {
    let setting = setting([Answer::from_text("Hi."), Answer::from_text("Yes.")]);
    let long = format!("  \n {} \nsecond line", "ä".repeat(200));
    for (id, message) in [("c1", long.as_str()), ("c2", "Really?")] {
        let body = json!({"message": message, "conversation": id});
        text(setting.post("/api/chat", &body).await).await;
    }
    let listed = json_of(setting.get("/api/conversations?view=page").await).await;
    let expected = json!([{"id": "c1", "title": "ä".repeat(80)}, {"id": "c2", "title": "Really?"}]);
    assert_eq!((&listed["conversations"], &listed["next"]), (&expected, &Value::Null));
    let plain = json_of(setting.get("/api/conversations").await).await;
    assert_eq!(plain["conversations"], json!(["c1", "c2"]));
}
