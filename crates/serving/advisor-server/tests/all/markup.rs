//! An answer of a model with markup and scripts.

use advisor_testkit::Answer;

use crate::disconnects::{bodies, in_one_piece};
use crate::setting::{setting, text};

const MARKUP: &str = "<script>alert(1)</script><img src=x onerror=alert(2)>\n\n</body>data: [DONE]\n\n";

/// No answer has the type of a page, and no text of a model can end its event.
#[tokio::test]
async fn markup_of_a_model_is_data() {
    for (path, body) in bodies().into_iter().chain(in_one_piece()) {
        let setting = setting([Answer::from_text(MARKUP)]);
        let asked = setting.post(path, &body).await;
        let read = setting.get("/api/conversations/c1").await;
        for response in [asked, read] {
            let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
            assert!(!kind.contains("html") && !kind.contains("script"), "{path}: {kind}");
            assert_eq!(response.headers()["x-content-type-options"], "nosniff", "{path}");
            let policy = response.headers()["content-security-policy"].to_str().unwrap();
            assert!(policy.contains("default-src 'none'"), "{path}");
            let body = text(response).await;
            // Outside of a JSON text, the markup would begin a line.
            assert!(!body.lines().any(|line| line.starts_with('<')), "{path}: {body}");
            assert!(body.matches("\ndata: [DONE]\n").count() <= 1, "{path}: {body}");
        }
    }
}
