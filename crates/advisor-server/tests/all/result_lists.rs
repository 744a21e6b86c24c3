//! Results of calls that the client runs: their places in its list of messages, and their forms.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::results::{ask, asking, body, results_sent, setting};
use crate::setting::{text, told};

/// The call of a list, and the result that may follow at once.
fn pair(path: &str, id: &str, result: &Value) -> [Value; 2] {
    let call = json!({"id": id, "type": "function", "function": {"name": "place", "arguments": "{}"}});
    match path {
        "/v1/responses" => [
            json!({"type": "function_call", "call_id": id, "name": "place", "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": id, "output": result}),
        ],
        "/v1/messages" => {
            let call = json!({"type": "tool_use", "id": id, "name": "place", "input": {}});
            let result = json!({"type": "tool_result", "tool_use_id": id, "content": result});
            [json!({"role": "assistant", "content": [call]}), json!({"role": "user", "content": [result]})]
        }
        "/api/ag-ui" => [
            json!({"id": "a", "role": "assistant", "toolCalls": [call]}),
            json!({"id": "m", "role": "tool", "toolCallId": id, "content": result}),
        ],
        _ => [
            json!({"role": "assistant", "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": id, "content": result}),
        ],
    }
}

const PATHS: [&str; 4] = ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/ag-ui"];

#[tokio::test]
async fn results_may_alternate_with_their_calls() {
    for path in PATHS {
        let setting = setting(&["t1", "t2"], &["In Oslo."]);
        ask(&setting, path, &asking(path)).await;
        let pairs = [pair(path, "t1", &json!("Oslo")), pair(path, "t2", &json!("Norway"))];
        ask(&setting, path, &body(path, "r2", &pairs.concat())).await;
        assert_eq!(results_sent(&setting), ["Oslo", "Norway"], "{path}");
    }
}

/// An id that a later call repeats: the earlier result is not the one of the later call.
#[tokio::test]
async fn earlier_result_is_not_of_a_later_call() {
    for path in PATHS {
        let setting = setting(&["t1"], &["In Oslo."]);
        ask(&setting, path, &asking(path)).await;
        let [call, result] = pair(path, "t1", &json!("earlier"));
        let said = json!({"id": "u2", "role": "user", "content": "Never mind."});
        ask(&setting, path, &body(path, "r2", &[call.clone(), result, call, said])).await;
        assert_eq!(results_sent(&setting).len(), 1, "{path}");
        assert!(!results_sent(&setting)[0].contains("earlier"), "{path}");
    }
}

#[tokio::test]
async fn results_of_any_json_reach_the_model() {
    for path in ["/v1/responses", "/v1/messages", "/api/ag-ui"] {
        for (result, sent) in [
            (json!({"city": "Oslo"}), r#"{"city":"Oslo"}"#),
            (json!(7), "7"),
            (json!(false), "false"),
            (json!(""), ""),
        ] {
            let setting = setting(&["t1"], &["In Oslo."]);
            ask(&setting, path, &asking(path)).await;
            ask(&setting, path, &body(path, "r2", &pair(path, "t1", &result))).await;
            assert_eq!(results_sent(&setting), [sent], "{path}");
        }
    }
}

/// Only in Messages a result may lack its content.
#[tokio::test]
async fn result_without_content_is_refused() {
    for path in PATHS {
        let setting = setting(&["t1"], &["In Oslo."]);
        ask(&setting, path, &asking(path)).await;
        let response = setting.post(path, &body(path, "r2", &pair(path, "t1", &Value::Null))).await;
        if path == "/v1/messages" {
            text(response).await;
            assert_eq!(results_sent(&setting), [""]);
            continue;
        }
        assert_eq!(told(response, StatusCode::BAD_REQUEST).await, "a result has no content", "{path}");
    }
}
