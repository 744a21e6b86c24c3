//! Failed turns in the terms that the clients of each protocol look for.

use std::time::Duration;

use advisor_core::{Error, ErrorKind};
use advisor_sse::{Failure, Frame, Frames};
use advisor_testkit::Answer;
use serde_json::{Value, json};

use crate::table::{encode, protocols};
use crate::turns::play;

/// Returns the events of a turn that fails so after a text, which are checked. Some clients of Chat Completions know an
/// error by the name of its event alone.
async fn failed(protocol: &str, kind: ErrorKind) -> Vec<Value> {
    let turn = play([Answer::new().text("It is").error(Error::new(kind, "canary"))]).await;
    let (_, encoder, check) = protocols().into_iter().find(|(name, ..)| *name == protocol).unwrap();
    let stream = encode(encoder(), Frames::new(), &turn);
    assert_eq!(check(&stream, &turn), Ok(()), "{protocol}:\n{stream}");
    let frames = Frame::read_all(&stream);
    let is_error = |frame: &&Frame| frame.json().is_some_and(|data| data["error"].is_object());
    frames.iter().filter(is_error).for_each(|frame| assert_eq!(frame.name.as_deref(), Some("error")));
    frames.iter().filter_map(Frame::json).collect()
}

/// The kind of an error, the terms of OpenAI (type, code, and code of a failed response), and the type of Anthropic.
type Row = (ErrorKind, [&'static str; 3], &'static str);

const BUSY: ErrorKind = ErrorKind::RateLimited { retry_after: Some(Duration::from_secs(3)) };

const ROWS: &[Row] = &[
    (
        ErrorKind::ContextOverflow,
        ["invalid_request_error", "context_length_exceeded", "context_length_exceeded"],
        "invalid_request_error",
    ),
    (BUSY, ["rate_limit_error", "rate_limit_exceeded", "rate_limit_exceeded"], "rate_limit_error"),
    (
        ErrorKind::InvalidHistory,
        ["invalid_request_error", "invalid_history", "invalid_prompt"],
        "invalid_request_error",
    ),
    (
        ErrorKind::ConversationBusy,
        ["invalid_request_error", "conversation_busy", "invalid_prompt"],
        "conflict_error",
    ),
    (ErrorKind::Cancelled, ["invalid_request_error", "cancelled", "invalid_prompt"], "invalid_request_error"),
    (ErrorKind::TooLarge, ["invalid_request_error", "too_large", "invalid_prompt"], "request_too_large"),
    (ErrorKind::Timeout, ["server_error", "timeout", "server_error"], "timeout_error"),
    (ErrorKind::Truncated, ["server_error", "truncated", "server_error"], "api_error"),
    // The key and the model are the server's, and not the client's.
    (ErrorKind::Authentication, ["server_error", "authentication", "server_error"], "api_error"),
    (ErrorKind::NotFound, ["server_error", "not_found", "server_error"], "api_error"),
    (ErrorKind::Store, ["server_error", "store", "server_error"], "overloaded_error"),
    (ErrorKind::Advisor, ["server_error", "advisor", "server_error"], "api_error"),
];

#[tokio::test]
async fn failures_have_the_terms_of_each_protocol() {
    for (kind, [openai, code, response_code], anthropic) in ROWS {
        let chat = failed("Chat Completions", *kind).await;
        let error = &chat.last().unwrap()["error"];
        assert_eq!([&error["type"], &error["code"]], [openai, code], "{kind:?}");
        let responses = failed("Responses", *kind).await;
        let [.., error, last] = responses.as_slice() else { panic!("{responses:?}") };
        assert_eq!([&error["error"]["type"], &error["error"]["code"]], [openai, code], "{kind:?}");
        assert_eq!(last["response"]["error"]["code"], *response_code, "{kind:?}");
        let messages = failed("Messages", *kind).await;
        assert_eq!(messages.last().unwrap()["error"]["type"], *anthropic, "{kind:?}");
    }
}

/// Clients know it by a code or by one of these words.
#[tokio::test]
async fn conversation_that_is_too_long_is_told_in_the_words_of_the_protocol() {
    let text = |events: &[Value], place: &str| {
        events.last().unwrap().pointer(place).unwrap().as_str().unwrap().to_owned()
    };
    for protocol in ["Chat Completions", "Messages"] {
        let text = text(&failed(protocol, ErrorKind::ContextOverflow).await, "/error/message");
        for words in
            ["prompt is too long: ", "exceeds the context window", "this model's maximum context length is "]
        {
            assert!(text.contains(words), "{text}");
        }
    }
    let own = Failure::from(ErrorKind::ContextOverflow).message;
    let run = failed("AG-UI", ErrorKind::ContextOverflow).await;
    assert_eq!(text(&run, "/message"), own);
}

/// Clients that take a failed response for a complete one raise this error, which has both of its known forms.
#[tokio::test]
async fn failed_response_is_an_error_before_its_end() {
    let events = failed("Responses", ErrorKind::Truncated).await;
    let [.., error, last] = events.as_slice() else { panic!("{events:?}") };
    let nested = json!({"type": "server_error", "code": "truncated", "message": "the answer broke off", "param": null});
    let number = events.len() - 2;
    let expected = json!({
        "type": "error", "sequence_number": number, "code": "truncated", "message": "the answer broke off",
        "param": null, "error": nested,
    });
    assert_eq!(error, &expected);
    assert_eq!((&last["type"], &last["sequence_number"]), (&json!("response.failed"), &json!(number + 1)));
}
