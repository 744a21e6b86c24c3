//! Headers that are no ASCII text, as browsers and client libraries may send them.

use advisor_testkit::Answer;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};

use crate::disconnects::bodies;
use crate::setting::{setting, told};

/// `Zürich` in Latin-1 and in UTF-8.
const ODD: [&[u8]; 2] = [b"Z\xfcrich", "Zürich".as_bytes()];

/// Returns the headers of a route that have an id.
fn headers_of(path: &str) -> &'static [&'static str] {
    match path {
        "/api/chat" | "/api/chunks" => &["idempotency-key"],
        "/api/ui" | "/api/ag-ui" => &[],
        _ => &["idempotency-key", "x-conversation-id"],
    }
}

/// An ignored id would begin another conversation, run a turn twice, or send all events again.
#[tokio::test]
async fn ids_in_headers_are_refused_if_not_ascii() {
    let stream = "/api/conversations/c1/stream";
    let joining = ["last-event-id", "x-turn-id"].map(|name| (Method::GET, stream, name, String::new()));
    let asking = bodies().into_iter().flat_map(|(path, body)| {
        headers_of(path).iter().map(move |name| (Method::POST, path, *name, body.to_string()))
    });
    for (method, path, name, body) in asking.chain(joining) {
        for odd in ODD {
            let setting = setting([Answer::from_text("Hi.")]);
            let request = Request::builder().method(method.clone()).uri(path);
            let request = request.header("content-type", "application/json").header(name, odd);
            let response = setting.send(request.body(Body::from(body.clone())).unwrap()).await;
            let message = told(response, StatusCode::BAD_REQUEST).await;
            assert!(message.contains(&format!("`{name}`")), "{path}: {message}");
            assert_eq!(setting.model.calls(), 0, "{path} {name}");
        }
    }
}
