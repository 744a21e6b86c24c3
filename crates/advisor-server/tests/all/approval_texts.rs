//! Refused decisions say what is wrong with them.

use std::sync::atomic::Ordering;

use advisor_testkit::Answer;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::approvals::{asked, decision, open_till, pays};
use crate::protocol_approvals::{interrupts, resolved, run};
use crate::setting::{json_of, text};
use crate::ui_approvals::{self, answered, continued, send};

async fn told(response: axum::response::Response) -> (StatusCode, String) {
    let status = response.status();
    (status, json_of(response).await["error"]["message"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn refused_decision_says_what_is_wrong_with_it() {
    let till = open_till([pays()]);
    let waiting = asked(&till).await;
    let approved = |place: usize| decision(&waiting[place], &json!("approved"));
    let changed = |cents: Value| decision(&waiting[1], &json!({"approved_with": {"cents": cents}}));
    let with = |field: &str, value: Value| {
        let mut decision = approved(1);
        decision[field] = value;
        decision
    };
    let other_key = waiting[1]["key"].as_str().unwrap().replace("/1/1", "/1/9");
    for (decisions, wanted) in [
        (vec![approved(0)], "waits without a decision"),
        (vec![], "waits without a decision"),
        (vec![approved(0), approved(1), approved(1)], "two decisions"),
        (vec![approved(0), with("arguments", json!("{}"))], "other arguments: show the call again"),
        (vec![approved(0), with("key", json!(other_key))], "does not wait for this call"),
        (vec![approved(0), with("expires_at", json!(7))], "expired"),
        (vec![approved(0), changed(json!("two"))], "do not fit"),
        (vec![approved(0), changed(json!(13))], "the policy denies the changed arguments"),
    ] {
        let body = json!({"conversation": "c1", "decisions": decisions});
        let (status, told) = told(till.setting.post("/api/chat", &body).await).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{told}");
        assert!(told.contains(wanted), "{body}: {told}");
    }
    for key in [json!("t1"), json!({"turn": "t1"})] {
        let body = json!({"conversation": "c1", "decisions": [with("key", key)]});
        let (status, told) = told(till.setting.post("/api/chat", &body).await).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{told}");
        assert!(told.contains("key") && !told.contains("Sent"), "{told}");
    }
    assert_eq!(till.paid.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn refused_answers_of_ag_ui_say_what_is_wrong() {
    let till = open_till([pays()]);
    let ids = interrupts(&till).await;
    let approved = |id: &str| resolved(id, &json!({"approved": true}));
    let forged = ids[1].replace(".1.1.", ".1.1.0");
    for (resume, wanted) in [
        (json!([approved(&ids[0]), approved(&forged)]), "names no call that waits"),
        (json!([approved(&ids[0]), approved(&forged), approved(&ids[1])]), "two decisions"),
        (json!([approved(&ids[0])]), "waits without a decision"),
        (json!([approved(&ids[0]), approved(&ids[1]), approved(&ids[1])]), "two decisions"),
        (json!([]), "waits without a decision"),
    ] {
        let messages = run("r2", &["Pay."], &resume);
        let (status, told) = told(till.setting.post("/api/ag-ui", &messages).await).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{told}");
        assert!(told.contains(wanted), "{resume}: {told}");
    }
    assert_eq!(till.paid.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn refused_answers_of_the_ai_sdk_say_what_is_wrong() {
    let till = open_till([pays(), Answer::from_text("Done.")]);
    let ids = ui_approvals::asked(&till).await;
    let both = |approved| {
        continued(&[answered("c1", &ids[0], approved, None), answered("c2", &ids[1], approved, None)])
    };
    assert!(text(send(&till, &both(true)).await).await.contains("Done."));
    let (status, denied) = told(send(&till, &both(false)).await).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(denied.contains("other answers") && !denied.contains("id of the turn"), "{denied}");
    // Another message is another turn.
    let mut elsewhere = both(true);
    elsewhere["id"] = json!("answer-7");
    let (status, late) = told(send(&till, &elsewhere).await).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(late.contains("its call is decided"), "{late}");
    assert_eq!(till.paid.load(Ordering::SeqCst), 2);
}
