//! Tests that the key appears nowhere, and that traces have no content.

use std::io;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use advisor_core::{ChatModel, ChatRequest, Chunk, Error, Message, Result, async_trait};
use advisor_testkit::{ChatTranscript, ReplayServer, Reply};
use bytes::Bytes;
use futures::StreamExt;
use provider_openai::backoff::Backoff;
use provider_openai::transport::{ByteStream, Transport, TransportError};
use provider_openai::{OpenAiModel, ProviderError};
use serde_json::json;
use tracing::Level;
use tracing_subscriber::fmt::format::FmtSpan;

const KEY: &str = "sk-canary+key-0123456789";
const HEADER: &str = "canary-header-value";
const BEARER: &str = "canary-behind-a-scheme";
const QUERY: &str = "canary-in-the-address";
const QUESTION: &str = "canary question";
const ANSWER: &str = "canary answer";

/// Returns all texts of an error: its text, its debug form, and those of its sources.
fn all_of(error: &Error) -> String {
    let mut all = format!("{error} {error:?} {error:#?}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        all.push_str(&format!(" {cause} {cause:?} {cause:#?}"));
        source = cause.source();
    }
    all
}

/// The text of the answer.
async fn ask(model: &OpenAiModel) -> Result<String> {
    let mut stream = model.stream(ChatRequest::new(Message::user(QUESTION))).await?;
    let mut text = String::new();
    while let Some(chunk) = stream.next().await {
        text.push_str(Chunk::text(&chunk?).unwrap_or_default());
    }
    Ok(text)
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("unpoisoned").write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Enables every callsite in this process. A callsite asks only the subscribers of the first thread that
/// reaches it. Without a global subscriber, a test on another thread can therefore disable it.
fn enable_callsites() {
    static ENABLED: Once = Once::new();
    ENABLED.call_once(|| {
        // Another module of this program may have set one.
        let _set = tracing::subscriber::set_global_default(tracing_subscriber::registry());
    });
}

/// Captures every line that is logged on this thread until the guard is dropped, and the fields of all spans.
fn trace() -> (Lines, tracing::subscriber::DefaultGuard) {
    enable_callsites();
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::TRACE)
        .with_span_events(FmtSpan::FULL)
        .with_writer(move || writer.clone())
        .finish();
    (lines, tracing::subscriber::set_default(subscriber))
}

impl Lines {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("unpoisoned").clone()).expect("text")
    }
}

/// Returns the forms in which a server may repeat the key: unchanged or in a URL.
fn disguises() -> Vec<String> {
    vec![KEY.to_owned(), KEY.replace('+', "%2B"), KEY.replace('+', "%2b")]
}

/// Everywhere a server can put words.
fn replies_that_say(key: &str) -> Vec<Reply> {
    let raw = |head: &str, body: &str| {
        Reply::raw(format!(
            "HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
    };
    let error = format!(
        r#"{{"message":"{key}","type":"{key}","code":"{key}","param":"{key}","failed_generation":"{key}","metadata":{{"raw":"{key}"}},"{key}":1}}"#
    );
    let body = format!(r#"{{"error":{error}}}"#);
    let origin = ChatTranscript::new(key).text(ANSWER).tool_call(0, key, key, &["{}"]).finish(key).done();
    let http: Vec<Reply> = [
        format!("500 {key}"),
        format!("302 Found\r\nlocation: https://elsewhere.example/{key}?{key}=1"),
        format!("429 Too Many Requests\r\nretry-after: {key}\r\nretry-after-ms: {key}"),
        format!("500 E\r\nx-request-id: {key}\r\nserver: {key}\r\nwww-authenticate: Bearer realm={key}\r\nset-cookie: k={key}"),
        format!("200 OK\r\ncontent-type: application/{key}"),
        format!("200 OK\r\ncontent-type: {key}; charset={key}"),
        format!("200 OK\r\ncontent-encoding: gzip, {key}"),
        format!("200 {key}\r\nnot a header {key}"),
        key.to_owned(),
        format!("200 OK\r\ntransfer-encoding: {key}"),
    ]
    .iter()
    .flat_map(|head| [raw(head, ""), raw(head, &body)])
    .collect();
    let bodies = [
        body.clone(),
        format!(r#"{{"error":"{key}"}}"#),
        format!(r#"{{"detail":[{{"msg":"{key}","type":"{key}"}}]}}"#),
        format!(r#"{{"message":"{key}","code":"{key}"}}"#),
        format!(r#"[{{"error":{error}}}]"#),
        format!("<html><title>{key}</title>"),
        format!("{key} and more"),
        format!("{}{key}", "é".repeat(32 << 10)),
        body[..body.len() - 10].to_owned(),
    ];
    let statuses =
        bodies.iter().flat_map(|body| [400, 401, 429, 500].map(|status| Reply::html(status, body.clone())));
    let whole = bodies.iter().map(|body| Reply::html(200, body.clone()));
    let events = [
        format!("data: {body}\n\n"),
        format!("event: error\ndata: {error}\n\n"),
        format!("event: error\ndata: {key}\n\n"),
        format!("event: {key}\nid: {key}\nretry: {key}\ndata: {{\"{key}\":\n\n"),
        format!(": {key}\n\n{key}: {key}\n\n"),
        format!("data: {{\"choices\":[],\"x\":{key}}}\n\n"),
        format!("data: {{\"type\":\"status\",\"message\":\"{key}\"}}\n\n"),
        format!("data: {{\"choices\":[{{\"error\":{error},\"finish_reason\":\"{key}\"}}]}}\n\n"),
        format!("data: {{\"choices\":[],\"x_groq\":{{\"error\":\"{key}\"}}}}\n\n"),
    ];
    let events = events.map(Reply::sse);
    http.into_iter().chain(statuses).chain(whole).chain(events).chain([Reply::sse(origin)]).collect()
}

#[tokio::test]
async fn no_word_of_a_server_shows_the_key() {
    for key in disguises() {
        let replies = replies_that_say(&key);
        let calls = replies.len();
        let server = ReplayServer::start(replies).await.expect("a port");
        let model = OpenAiModel::new("m")
            .with_base_url(format!("{}/v1", server.url()))
            .with_api_key(KEY)
            .with_retries(Backoff::none());
        let (lines, traced_from_here) = trace();
        let mut told = String::new();
        let mut failed = 0;
        for _ in 0..calls {
            if let Err(error) = ask(&model).await {
                told.push_str(&format!("{}\n", all_of(&error)));
                failed += 1;
            }
        }
        drop(traced_from_here);
        assert!(failed >= calls - 4, "{failed} of {calls}");
        // Four letters of a key say little; the server's own words may end so.
        for shown in [told, lines.text()] {
            let shown = shown.to_ascii_lowercase();
            let pieces = key.to_ascii_lowercase();
            for piece in pieces.as_bytes().windows(16) {
                let piece = str::from_utf8(piece).expect("ASCII");
                let line = shown.lines().find(|line| line.contains(piece));
                assert!(line.is_none(), "{key}: {piece} in {}", line.unwrap_or_default());
            }
        }
    }
}

#[tokio::test]
async fn a_log_names_a_failure_and_quotes_nothing() {
    let report = |code: &str, param: &str| json!({"error": {"message": format!("Invalid: '{QUESTION}'"), "type": "invalid_request_error", "code": code, "param": param}});
    let replies = [
        Reply::json(503, report("overloaded", "model")),
        Reply::json(400, report("unsupported_value", "messages[3].content")),
        Reply::json(400, report(&format!("because {QUESTION}"), KEY)),
    ];
    let server = ReplayServer::start(replies).await.expect("a port");
    let once = Backoff { retries: 1, first: Duration::ZERO, longest: Duration::ZERO, ..Backoff::default() };
    let model = OpenAiModel::new("m")
        .with_base_url(format!("{}/v1", server.url()))
        .with_api_key(KEY)
        .with_retries(once);
    let (lines, traced_from_here) = trace();
    let error = ask(&model).await.expect_err("refused");
    ask(&model).await.expect_err("refused");
    drop(traced_from_here);
    let said = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<ProviderError>());
    let said = said.expect("what the provider said");
    assert_eq!(said.param.as_deref(), Some("messages[3].content"));
    assert!(said.message.contains(QUESTION), "the caller is told");
    let traced = lines.text();
    let line = |with: &str| {
        let with_it = traced.lines().filter(|line| line.contains("WARN") && line.contains(with));
        with_it
            .map(|line| line.split_once("attempt").map_or("", |(_, fields)| fields).to_owned())
            .collect::<Vec<_>>()
    };
    let again = line("asking the model again").concat();
    assert!(
        again.contains("status=503 code=\"overloaded\" type=\"invalid_request_error\" param=\"model\""),
        "{again}"
    );
    let [failed, odd] = &line("the model call failed")[..] else { panic!("two failures: {traced}") };
    assert!(
        failed.contains("code=\"unsupported_value\"") && failed.contains("param=\"messages[3].content\""),
        "{failed}"
    );
    assert!(odd.contains("status=400") && !odd.contains("code="), "{odd}");
    assert!(!traced.contains(QUESTION) && !traced.contains(KEY), "{traced}");
}

/// A custom transport that puts its request into its errors.
struct Chatty;

#[async_trait]
impl Transport for Chatty {
    async fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> std::result::Result<http::Response<ByteStream>, TransportError> {
        let source = format!("cannot send to {} with {KEY}", request.uri()).into();
        Err(TransportError::Broken { source })
    }
}

#[tokio::test]
async fn no_error_of_a_transport_shows_the_key() {
    enable_callsites();
    let model = OpenAiModel::new("m").with_api_key(KEY).with_transport(Chatty).with_retries(Backoff::none());
    let told = all_of(&ask(&model).await.expect_err("it cannot send"));
    assert!(told.contains("cannot send to") && !told.contains(KEY), "{told}");
}

#[tokio::test]
async fn law_r3_key_is_in_no_debug_error_trace() {
    let echo = json!({"error": {"message": format!("Incorrect API key provided: {KEY} {HEADER} {BEARER} {QUERY}"), "code": KEY}});
    let answer = ChatTranscript::new("m").text(ANSWER).finish("stop").done();
    let replies = [
        Reply::json(401, &echo),
        Reply::json(500, &echo),
        Reply::html(502, format!("<p>{KEY}")),
        Reply::html(200, format!("<p>{KEY}")),
        Reply::json(200, json!({"data": KEY})),
        Reply::sse(format!("data: {echo}\n\n")),
        Reply::sse(format!("data: {KEY}\n\n")),
        Reply::hang_up(),
        Reply::sse(answer),
        Reply::sse(ChatTranscript::new("m").text("Hello").without_done()).cut_after(999),
    ];
    let calls = replies.len();
    let server = ReplayServer::start(replies).await.expect("a port");
    let model = OpenAiModel::new("m")
        .with_base_url(format!("{}/v1?token={QUERY}", server.url()))
        .with_api_key(KEY)
        .with_header("x-secret", HEADER)
        .with_header("x-other", format!("Bearer {BEARER}"))
        .with_retries(Backoff::none());
    let (lines, _traced_from_here) = trace();
    let mut told = format!("{model:?} {model:#?}");
    let mut completed = 0;
    for _ in 0..calls {
        match ask(&model).await {
            Ok(text) => {
                assert_eq!(text, ANSWER);
                completed += 1;
            }
            Err(error) => told.push_str(&all_of(&error)),
        }
    }
    assert_eq!(completed, 1);
    let unusable = model.clone().with_base_url(format!("http://{KEY}:{KEY}@127.0.0.1:1/v1"));
    told.push_str(&format!("{unusable:?}"));
    told.push_str(&all_of(&ask(&unusable).await.expect_err("a user name")));
    let traced = lines.text();
    assert!(traced.contains("asking the model"), "the traces were captured: {traced}");
    assert!(server.requests()[0].path.contains(QUERY), "the key was sent");
    for secret in [KEY, HEADER, BEARER, QUERY] {
        assert!(!told.contains(secret), "{told}");
        assert!(!traced.contains(secret), "{traced}");
    }
    for content in [QUESTION, ANSWER] {
        assert!(!told.contains(content), "{told}");
        assert!(!traced.contains(content), "{traced}");
    }
}
