//! Pictures and files of the user, in the words of each protocol.

use advisor_core::{Media, Message, MessageContent, Part};
use advisor_testkit::Answer;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::results;
use crate::setting::{refused, setting, text, told};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";
const UI: &str = "/api/ui";
const AG_UI: &str = "/api/ag-ui";

/// Returns a request of a route whose message has these parts.
fn body(path: &str, parts: &Value) -> Value {
    results::body(path, "r1", &[json!({"id": "u1", "role": "user", "content": parts, "parts": parts})])
}

/// Returns the parts that the model gets for these.
async fn sent(path: &str, parts: Value) -> Vec<Part> {
    let setting = setting([Answer::from_text("Fine.")]);
    let response = setting.post(path, &body(path, &parts)).await;
    assert_eq!(response.status(), StatusCode::OK, "{path}: {parts}");
    assert!(text(response).await.contains("Fine."), "{path}");
    match setting.model.prompts()[0].messages.last().map(Message::content) {
        Some(MessageContent::User(parts)) => parts.clone(),
        other => panic!("{path}: {other:?}"),
    }
}

fn url(mime: &str) -> Media {
    Media::from_url(mime, "https://example.org/a")
}

fn bytes(mime: &str) -> Media {
    Media::from_bytes(mime, "abc".as_bytes())
}

/// The parts of each protocol, and what the model gets.
fn rows() -> Vec<(&'static str, Value, Part)> {
    let (address, data) = ("https://example.org/a", "data:image/png;base64,YWJj");
    let pdf = "data:application/pdf;base64,YWJj";
    let named = bytes("application/pdf").with_name("a.pdf");
    let source = |kind: &str, source: Value| json!({"type": kind, "source": source});
    let base64 = |mime: &str| json!({"type": "base64", "media_type": mime, "data": "YWJj"});
    let plain = json!({"type": "text", "media_type": "text/plain", "data": "abc"});
    let mut titled = source("document", base64("application/pdf"));
    titled["title"] = "a.pdf".into();
    let in_data = |mime: &str| json!({"type": "data", "mimeType": mime, "value": "YWJj"});
    vec![
        (CHAT, json!({"type": "image_url", "image_url": {"url": address}}), Part::Image(url("image/*"))),
        (CHAT, json!({"type": "image_url", "image_url": {"url": data}}), Part::Image(bytes("image/png"))),
        (
            CHAT,
            json!({"type": "file", "file": {"file_data": pdf, "filename": "a.pdf"}}),
            Part::File(named.clone()),
        ),
        (
            CHAT,
            json!({"type": "input_audio", "input_audio": {"data": "YWJj", "format": "mp3"}}),
            Part::Audio(bytes("audio/mpeg")),
        ),
        (RESPONSES, json!({"type": "input_image", "image_url": address}), Part::Image(url("image/*"))),
        (RESPONSES, json!({"type": "input_image", "image_url": data}), Part::Image(bytes("image/png"))),
        (
            RESPONSES,
            json!({"type": "input_file", "file_data": pdf, "filename": "a.pdf"}),
            Part::File(named.clone()),
        ),
        (
            RESPONSES,
            json!({"type": "input_file", "file_url": address}),
            Part::File(url("application/octet-stream")),
        ),
        (MESSAGES, source("image", base64("image/png")), Part::Image(bytes("image/png"))),
        (MESSAGES, source("image", json!({"type": "url", "url": address})), Part::Image(url("image/*"))),
        (MESSAGES, titled, Part::File(named.clone())),
        (
            MESSAGES,
            source("document", json!({"type": "url", "url": address})),
            Part::File(url("application/octet-stream")),
        ),
        (MESSAGES, source("document", plain), Part::File(bytes("text/plain"))),
        (
            UI,
            json!({"type": "file", "mediaType": "image/png", "url": address}),
            Part::Image(url("image/png")),
        ),
        (UI, json!({"type": "file", "mediaType": "image/png", "url": data}), Part::Image(bytes("image/png"))),
        (
            UI,
            json!({"type": "file", "mediaType": "application/pdf", "url": pdf, "filename": "a.pdf"}),
            Part::File(named),
        ),
        (AG_UI, source("image", in_data("image/png")), Part::Image(bytes("image/png"))),
        (AG_UI, source("image", json!({"type": "url", "value": address})), Part::Image(url("image/*"))),
        (AG_UI, source("audio", in_data("audio/wav")), Part::Audio(bytes("audio/wav"))),
        (AG_UI, source("video", in_data("video/mp4")), Part::Video(bytes("video/mp4"))),
        (AG_UI, source("document", in_data("application/pdf")), Part::File(bytes("application/pdf"))),
    ]
}

#[tokio::test]
async fn pictures_and_files_reach_the_model() {
    for (path, part, expected) in rows() {
        let text = |text: &str| match path {
            RESPONSES => json!({"type": "input_text", "text": text}),
            _ => json!({"type": "text", "text": text}),
        };
        let parts = json!([text("What "), text("is it?"), part, text("Tell me.")]);
        let all = ["What is it?".into(), expected.clone(), "Tell me.".into()];
        assert_eq!(sent(path, parts).await, all, "{path}: {part}");
        // A picture may be the whole message.
        assert_eq!(sent(path, json!([part])).await, [expected], "{path}");
    }
}

#[tokio::test]
async fn texts_in_parts_are_one_text() {
    for path in [CHAT, RESPONSES, MESSAGES, UI, AG_UI] {
        let parts = json!([{"type": "text", "text": "How is "}, {"type": "text", "text": "it?"}]);
        assert_eq!(sent(path, parts).await, ["How is it?".into()], "{path}");
    }
    // An application's own parts of a message are for its page.
    let own = json!([{"type": "data-place", "data": {"x": 1}}, {"type": "text", "text": "Hi"}]);
    assert_eq!(sent(UI, own).await, ["Hi".into()]);
}

/// The refusal names the part; nothing of it is dropped silently.
#[tokio::test]
async fn parts_that_cannot_be_passed_on_are_refused() {
    let source = |source: Value| json!({"type": "image", "source": source});
    for (path, part, named) in [
        (CHAT, json!({"type": "file", "file": {"file_id": "f1"}}), "`file`"),
        (CHAT, json!({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}), "`image_url`"),
        (CHAT, json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,%%"}}), "`image_url`"),
        (CHAT, json!({"type": "image_url", "image_url": {"url": "data:image/png,abc"}}), "`image_url`"),
        (CHAT, json!({"type": "image_url"}), "`image_url`"),
        (
            CHAT,
            json!({"type": "input_audio", "input_audio": {"data": "YWJj", "format": "x/y"}}),
            "`input_audio`",
        ),
        (RESPONSES, json!({"type": "input_image", "file_id": "f1"}), "`input_image`"),
        (RESPONSES, json!({"type": "input_file", "file_id": "f1"}), "`input_file`"),
        (MESSAGES, source(json!({"type": "file", "file_id": "f1"})), "`image`"),
        (MESSAGES, source(json!({"type": "base64", "media_type": "image/png", "data": "?"})), "`image`"),
        (MESSAGES, json!({"type": "container_upload", "file_id": "f1"}), "`container_upload`"),
        (AG_UI, source(json!({"type": "file", "value": "f1"})), "`image`"),
        (AG_UI, json!({"type": "binary", "mimeType": "image/png", "id": "f1"}), "`binary`"),
        (
            UI,
            json!({"type": "file", "mediaType": "image/png", "url": "blob:https://example.org/1"}),
            "`file`",
        ),
        (UI, json!({"type": "odd"}), "`odd`"),
    ] {
        let setting = setting([Answer::from_text("Fine.")]);
        let parts = json!([{"type": "text", "text": "What is it?"}, part]);
        let response = setting.post(path, &body(path, &parts)).await;
        let message = told(response, StatusCode::BAD_REQUEST).await;
        assert!(message.contains(named) && message.len() < 200, "{path}: {message}");
        assert_eq!(setting.model.calls(), 0);
    }
}

/// The same id with another picture is another message.
#[tokio::test]
async fn other_picture_under_the_same_id_is_refused() {
    let with = |data: &str| {
        let picture =
            json!({"type": "file", "mediaType": "image/png", "url": format!("data:image/png;base64,{data}")});
        body(UI, &json!([{"type": "text", "text": "What is it?"}, picture]))
    };
    let setting = setting([Answer::from_text("A cat.")]);
    text(setting.post(UI, &with("YWJj")).await).await;
    let again = setting.post(UI, &with("YWJj")).await;
    assert!(text(again).await.contains("A cat."));
    let other = setting.post(UI, &with("YWJk")).await;
    assert_eq!(refused(other, StatusCode::UNPROCESSABLE_ENTITY).await, "turn_id_reused");
    assert_eq!(setting.model.calls(), 1);
}

/// Pictures of the client's history are in memory already. A client may leave them out, but has no others.
#[tokio::test]
async fn law_m8_pictures_of_the_history_are_those_of_memory() {
    let picture = |data: &str| json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}});
    let text_part = json!({"type": "text", "text": "What is it?"});
    let answer = json!({"role": "assistant", "content": "One."});
    let asked = |content: &Value| json!({"role": "user", "content": content});
    let cases = [
        (json!([text_part, picture("YWJj")]), StatusCode::OK),
        (json!([text_part]), StatusCode::OK),
        (json!([text_part, picture("YWJk")]), StatusCode::BAD_REQUEST),
        (
            json!([text_part, {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]),
            StatusCode::BAD_REQUEST,
        ),
    ];
    for (kept, status) in cases {
        let setting = setting(["One.", "Two."].map(Answer::from_text));
        let first = json!({"messages": [asked(&json!([text_part, picture("YWJj")]))], "user": "c1"});
        text(setting.post(CHAT, &first).await).await;
        let second = json!({"messages": [asked(&kept), answer, asked(&json!("And?"))], "user": "c1"});
        assert_eq!(setting.post(CHAT, &second).await.status(), status, "{kept}");
    }
}
