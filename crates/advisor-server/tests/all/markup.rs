//! An answer of a model with markup and scripts.

use advisor_testkit::Answer;
use serde_json::json;

use crate::setting::{setting, text};

const MARKUP: &str = "<script>alert(1)</script><img src=x onerror=alert(2)>\n\n</body>data: [DONE]\n\n";

/// No answer has the type of a page, and no text of a model can end its event.
#[tokio::test]
async fn markup_of_a_model_is_data() {
    let message = json!({"role": "user", "content": "Hi", "parts": [{"type": "text", "text": "Hi"}]});
    for (path, body) in [
        ("/api/chat", json!({"message": "Hi", "conversation": "c1"})),
        ("/api/ui", json!({"id": "c1", "messages": [message]})),
        ("/api/chunks", json!({"message": "Hi", "conversation": "c1"})),
        ("/api/ag-ui", json!({"threadId": "c1", "runId": "r1", "messages": [message]})),
        ("/v1/chat/completions", json!({"messages": [message], "user": "c1", "stream": true})),
        ("/v1/chat/completions", json!({"messages": [message], "user": "c1"})),
        ("/v1/responses", json!({"input": "Hi", "conversation": "c1", "stream": true})),
        ("/v1/responses", json!({"input": "Hi", "conversation": "c1"})),
        ("/v1/messages", json!({"messages": [message], "user": "c1", "stream": true})),
        ("/v1/messages", json!({"messages": [message], "user": "c1"})),
    ] {
        let setting = setting([Answer::from_text(MARKUP)]);
        let asked = setting.post(path, &body).await;
        let read = setting.get("/api/conversations/c1").await;
        for response in [asked, read] {
            let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
            assert!(!kind.contains("html") && !kind.contains("script"), "{path}: {kind}");
            assert_eq!(response.headers()["x-content-type-options"], "nosniff", "{path}");
            assert!(
                response.headers()["content-security-policy"]
                    .to_str()
                    .unwrap()
                    .contains("default-src 'none'")
            );
            let body = text(response).await;
            // Outside of a JSON text, the markup would begin a line.
            assert!(!body.lines().any(|line| line.starts_with('<')), "{path}: {body}");
            assert!(body.matches("\ndata: [DONE]\n").count() <= 1, "{path}: {body}");
        }
    }
}
