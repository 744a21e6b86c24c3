//! Approvals of calls with other arguments than the model wrote, by clients of the protocols.

use std::sync::atomic::Ordering;

use advisor_testkit::Answer;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::approvals::{Till, open_till, results};
use crate::protocol_approvals::{finished, resolved, run};
use crate::setting::{json_of, text, told};
use crate::ui_approvals::{answered, asked, continued, send};

fn till() -> Till {
    open_till([Answer::from_calls([("c1", "pay", r#"{"cents":1,"to":"ann"}"#)]), Answer::from_text("Done.")])
}

fn runs(till: &Till) -> usize {
    till.paid.load(Ordering::SeqCst)
}

async fn interrupt(till: &Till) -> Value {
    let stream = text(till.setting.post("/api/ag-ui", &run("r1", &["Pay."], &Value::Null)).await).await;
    finished(&stream)["outcome"]["interrupts"][0].clone()
}

async fn resume(till: &Till, asked: &Value, payload: &Value) -> axum::response::Response {
    let resume = json!([resolved(asked["id"].as_str().unwrap(), payload)]);
    till.setting.post("/api/ag-ui", &run("r2", &["Pay."], &resume)).await
}

#[tokio::test]
async fn ag_ui_clients_approve_with_other_arguments() {
    let till = till();
    let asked = interrupt(&till).await;
    let offered = &asked["responseSchema"];
    assert_eq!(offered["properties"]["editedArgs"], json!({"type": "object"}));
    assert_eq!(offered["additionalProperties"], false);
    for _ in 0..2 {
        let edited = resume(&till, &asked, &json!({"approved": true, "editedArgs": {"cents": 7}})).await;
        assert!(text(edited).await.contains("Done."));
    }
    assert_eq!(results(&till), ["The call ran with changed arguments: {\"cents\":7}\npaid 7"]);
    assert_eq!(runs(&till), 1);
}

/// A payload that is not of the offered schema, or arguments that may not run, run nothing.
#[tokio::test]
async fn ag_ui_payloads_outside_the_schema_are_refused() {
    let till = till();
    let asked = interrupt(&till).await;
    let (bad, unprocessable) = (StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY);
    for (payload, status, named) in [
        (json!({"approved": true, "arguments": {"cents": 7}}), bad, "unknown field `arguments`"),
        (json!({"approved": true, "edited": {"cents": 7}}), bad, "unknown field `edited`"),
        (json!({"approved": false, "editedArgs": {"cents": 7}}), bad, "`editedArgs`"),
        (json!({"approved": true, "editedArgs": "{\"cents\":7}"}), bad, "editedArgs"),
        (json!({"approved": true, "editedArgs": {"cents": "7"}}), unprocessable, "do not fit"),
        (json!({"approved": true, "editedArgs": {"cents": 13}}), unprocessable, "arguments are denied"),
    ] {
        let told = told(resume(&till, &asked, &payload).await, status).await;
        assert!(told.contains(named), "{payload}: {told}");
    }
    assert_eq!(runs(&till), 0);
    let plain = resume(&till, &asked, &json!({"approved": true, "editedArgs": null, "reason": "fine"})).await;
    assert!(text(plain).await.contains("Done."));
    assert_eq!(results(&till), ["paid 1"]);
}

/// The part of an approval shows what is approved. One that shows another call approves nothing.
#[tokio::test]
async fn law_t6_ui_approval_runs_what_its_part_shows() {
    let till = till();
    let asked = asked(&till).await;
    let showing = |field: &str, value: Value| {
        let mut part = answered("c1", &asked[0], true, None);
        part[field] = value;
        continued(&[part])
    };
    for part in [
        showing("input", json!({"cents": 2, "to": "ann"})),
        showing("input", json!({"cents": 1})),
        showing("input", json!({"cents": 1, "to": "ann", "fee": 1})),
        showing("input", json!("{}")),
        showing("toolName", json!("refund")),
        showing("type", json!("tool-refund")),
    ] {
        let told = told(send(&till, &part).await, StatusCode::UNPROCESSABLE_ENTITY).await;
        assert!(told.contains("show the call again"), "{part}: {told}");
    }
    assert_eq!(runs(&till), 0);
    let same = showing("input", json!({"to": "ann", "cents": 1.0}));
    assert!(text(send(&till, &same).await).await.contains("Done."));
    assert_eq!(runs(&till), 1);
}

/// Of whole numbers that JavaScript rounds, a part has the rounded one.
#[tokio::test]
async fn ui_part_with_a_rounded_number_shows_its_call() {
    let call = ("c1", "pay", r#"{"cents":9007199254740993}"#);
    let till = open_till([Answer::from_calls([call]), Answer::from_text("Done.")]);
    let asked = asked(&till).await;
    let mut part = answered("c1", &asked[0], true, None);
    part["input"] = json!({"cents": 9007199254740992_u64});
    (part["type"], part["toolName"]) = (json!("tool-pay"), Value::Null);
    assert!(text(send(&till, &continued(&[part])).await).await.contains("Done."));
    assert_eq!(results(&till), ["paid 9007199254740993"]);
}

/// The request that is repeated beside its answer shows what is approved.
#[tokio::test]
async fn law_t6_responses_approval_runs_what_its_request_shows() {
    let till = till();
    let asking = json!({"model": "chain", "input": "Pay.", "conversation": "c1"});
    let first = json_of(till.setting.post("/v1/responses", &asking).await).await;
    let asked = &first["output"][0];
    let answer =
        json!({"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": true});
    let send = async |field: &str, value: Value| {
        let mut shown = asked.clone();
        shown[field] = value;
        let body = json!({"model": "chain", "conversation": "c1", "input": [shown, answer]});
        till.setting.post("/v1/responses", &body).await
    };
    for (field, value) in [
        ("arguments", json!(r#"{"cents":2,"to":"ann"}"#)),
        ("arguments", json!("cents")),
        ("name", json!("refund")),
    ] {
        let told = told(send(field, value).await, StatusCode::UNPROCESSABLE_ENTITY).await;
        assert!(told.contains("show the call again"), "{field}: {told}");
    }
    assert_eq!(runs(&till), 0);
    let same = send("arguments", json!(r#"{ "to": "ann", "cents": 1 }"#)).await;
    assert!(text(same).await.contains("Done."));
    assert_eq!(runs(&till), 1);
}
