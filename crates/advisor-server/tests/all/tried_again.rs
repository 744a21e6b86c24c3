//! Turns that clients submit again after a broken connection.

use advisor_testkit::Answer;
use axum::body::Body;
use axum::http::Request;
use serde_json::Value;

use crate::disconnects::bodies;
use crate::setting::{post_in, setting, text, until};

/// A request that names its turn, and whose turn stops if its client disconnects.
fn named(path: &str, body: &Value) -> Request<Body> {
    let request = post_in(path, body).header("idempotency-key", "t1").header("x-on-disconnect", "stop");
    request.body(Body::from(body.to_string())).unwrap()
}

/// The server has stopped the turn because of its client, so this client gets an answer when it tries again.
#[tokio::test]
async fn turn_runs_again_after_a_disconnect_has_stopped_it() {
    for (path, body) in &bodies() {
        let answers = [Answer::new().text("It is").hang(), Answer::from_text("It is sunny.")];
        let setting = setting(answers);
        let (_, rest) = until(setting.send(named(path, body)).await, "It is").await;
        drop(rest);
        let again = text(setting.send(named(path, body)).await).await;
        assert!(again.contains("It is sunny.") && !again.contains("cancelled"), "{path}: {again}");
        // Now there is an answer, which is repeated.
        let third = text(setting.send(named(path, body)).await).await;
        assert!(third.contains("It is sunny."), "{path}: {third}");
        assert_eq!(setting.model.calls(), 2, "{path}");
        assert_eq!(setting.texts().await, ["Hi", "It is sunny."], "{path}");
    }
}
