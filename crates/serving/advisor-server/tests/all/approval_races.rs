//! Decisions that are sent again while the calls that they approve run, or at once with others.

use std::sync::Arc;

use advisor_testkit::Answer;
use axum::http::StatusCode;
use futures::future::select;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tool_call_advisor::FnTool;

use crate::approvals::{definition, paying, pays};
use crate::protocol_approvals::{self, approved, approved_response};
use crate::setting::{Setting, json_of, text};
use crate::ui_approvals::{answered, continued};
use crate::ui_history::field;

/// A server whose tool `pay` waits for an approval, and then for the test.
struct SlowTill {
    setting: Arc<Setting>,
    /// Has a permit for each run that has begun.
    begun: Arc<Semaphore>,
    /// Each run takes a permit before it ends.
    may_end: Arc<Semaphore>,
}

fn slow_till(answers: impl IntoIterator<Item = Answer>) -> SlowTill {
    let (begun, may_end) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (begins, ends) = (Arc::clone(&begun), Arc::clone(&may_end));
    let pay = FnTool::new(definition("pay"), move |arguments: Value| {
        let ends = Arc::clone(&ends);
        begins.add_permits(1);
        async move {
            ends.acquire().await.unwrap().forget();
            Ok(format!("paid {}", arguments["cents"]))
        }
    });
    SlowTill { setting: Arc::new(paying(answers, pay, |client| client)), begun, may_end }
}

impl SlowTill {
    /// Sends a request in a separate task, and reads its answer.
    fn send(
        &self,
        (path, key): (&'static str, Option<&'static str>),
        body: &Value,
    ) -> tokio::task::JoinHandle<(StatusCode, String)> {
        let (setting, body) = (Arc::clone(&self.setting), body.clone());
        tokio::spawn(async move {
            let response = match key {
                Some(key) => setting.post_as(key, path, &body).await,
                None => setting.post(path, &body).await,
            };
            (response.status(), text(response).await)
        })
    }

    async fn wait_for_runs(&self, runs: u32) {
        self.begun.acquire_many(runs).await.unwrap().forget();
    }
}

/// Lets the other tasks run until they wait for a tool.
async fn let_requests_be_read() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

async fn ui_decision(till: &SlowTill) -> Value {
    let user = json!({"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Pay."}]});
    let asked = json!({"id": "c1", "messages": [user], "trigger": "submit-message"});
    let (_, stream) = till.send(("/api/ui", None), &asked).await.unwrap();
    let asked = field(&stream, "tool-approval-request", "approvalId");
    let parts = [answered("c1", &asked[0], true, None), answered("c2", &asked[1], true, None)];
    json!({"id": "c1", "messages": [continued(&parts)], "trigger": "submit-message"})
}

async fn run_decision(till: &SlowTill, run: &str) -> Value {
    let user = json!({"id": "u", "role": "user", "content": "Pay."});
    let asked = json!({"threadId": "c1", "runId": "r1", "messages": [user]});
    let (_, stream) = till.send(("/api/ag-ui", None), &asked).await.unwrap();
    protocol_approvals::run(run, &["Pay."], &approved(&stream))
}

async fn response_decision(till: &SlowTill) -> Value {
    let asking = json!({"model": "chain", "input": "Pay.", "conversation": "c1"});
    let first = json_of(till.setting.post("/v1/responses", &asking).await).await;
    json!({"previous_response_id": first["id"], "input": approved_response(&first), "stream": true})
}

/// A decision that is sent again while the calls run joins their turn, and shows all their ends.
#[tokio::test]
async fn law_t5_decision_sent_again_joins_the_running_turn() {
    for path in ["/api/ui", "/api/ag-ui", "/v1/responses"] {
        let till = slow_till([pays(), Answer::from_text("Done.")]);
        let (body, key) = match path {
            "/api/ui" => (ui_decision(&till).await, None),
            "/api/ag-ui" => (run_decision(&till, "r2").await, None),
            _ => (response_decision(&till).await, Some("d1")),
        };
        let first = till.send((path, key), &body);
        till.wait_for_runs(1).await;
        let again = till.send((path, key), &body);
        let_requests_be_read().await;
        till.may_end.add_permits(2);
        let (first, again) = (first.await.unwrap(), again.await.unwrap());
        assert_eq!((first.0, again.0), (StatusCode::OK, StatusCode::OK), "{path}");
        let ends = |stream: &str| stream.matches("paid").count();
        assert_eq!(ends(&first.1), ends(&again.1), "{path}");
        assert!(again.1.contains("Done."));
    }
}

/// Of several runs with the same decisions, one runs the calls. The others are refused, and decide nothing later.
#[tokio::test]
async fn law_t5_one_of_several_runs_decides() {
    let till = slow_till([pays(), Answer::from_text("Done.")]);
    let body = run_decision(&till, "r2").await;
    let of_run = |run: &str| {
        let mut body = body.clone();
        body["runId"] = run.into();
        till.send(("/api/ag-ui", None), &body)
    };
    // The run that decides waits for the till, and the other one is refused meanwhile.
    let (refused, decides) = select(of_run("r2"), of_run("r3")).await.factor_first();
    let late = of_run("r4").await;
    till.may_end.add_permits(2);
    let statuses = [decides.await, refused, late].map(|run| run.unwrap().0);
    assert_eq!(statuses, [StatusCode::OK, StatusCode::CONFLICT, StatusCode::CONFLICT]);
    assert_eq!(of_run("r5").await.unwrap().0, StatusCode::BAD_REQUEST);
    assert_eq!(till.begun.available_permits(), 2);
}

/// A client that disconnects while an approved call runs, and sends the same run again: no call runs twice, and the model is
/// asked to verify what was stopped.
#[tokio::test]
async fn law_t5_run_sent_again_after_disconnect_repeats_no_call() {
    let till = slow_till([pays(), Answer::from_text("I will check.")]);
    let body = run_decision(&till, "r2").await;
    let first = till.send(("/api/ag-ui", None), &body);
    till.wait_for_runs(2).await;
    first.abort();
    let _ = first.await;
    till.may_end.add_permits(4);
    let (status, stream) = till.send(("/api/ag-ui", None), &body).await.unwrap();
    assert_eq!(status, StatusCode::OK, "{stream}");
    assert!(stream.contains("I will check."), "{stream}");
    assert_eq!(stream.matches("TOOL_CALL_RESULT").count(), 2, "{stream}");
    assert_eq!(till.begun.available_permits(), 0);
}
