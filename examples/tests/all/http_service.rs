//! The service of the `http_service` example, over real connections with a real client.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use advisor_chain::chain::TurnEnd;
use advisor_chain::memory::ConversationStore;
use advisor_chain::memory::store::{EntryId, EntryKind};
use advisor_chain::{
    ChatMemoryAdvisor, ChatModel, ConversationKey, Error, ErrorKind, FinishReason, InMemoryStore, Message,
};
use advisor_examples::chat_service::{Service, User, serve};
use advisor_testkit::{Answer, FaultStore, Gate, ScriptedModel, StoreFault};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longer than anything here takes, unless it never ends.
const LIMIT: Duration = Duration::from_secs(20);
const LONG: Duration = Duration::from_secs(3600);

async fn within<T>(work: impl Future<Output = T>) -> T {
    timeout(LIMIT, work).await.expect("it does not end")
}

/// A service that runs, and its users.
struct Running {
    url: String,
    memory: ChatMemoryAdvisor,
    store: Arc<dyn ConversationStore>,
    http: reqwest::Client,
    end: oneshot::Sender<()>,
    serving: JoinHandle<io::Result<()>>,
}

impl Running {
    async fn start(model: impl ChatModel, patience: Duration) -> Self {
        Self::start_with(model, Arc::new(InMemoryStore::new()), patience).await
    }

    async fn start_with(
        model: impl ChatModel,
        store: Arc<dyn ConversationStore>,
        patience: Duration,
    ) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let memory = ChatMemoryAdvisor::new(Arc::clone(&store));
        let users = [("of-ann", "ann"), ("of-bob", "bob")];
        let users = users.map(|(token, name)| (token.to_owned(), User { name: name.to_owned() }));
        let service = Service::new(model, memory.clone(), users).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (end, ended) = oneshot::channel();
        let signal = async {
            let _ = ended.await;
        };
        let serving = tokio::spawn(serve(listener, service, signal, patience));
        Self { url, memory, store, http: reqwest::Client::new(), end, serving }
    }

    fn post(&self, user: &str, conversation: &str, body: &Value) -> reqwest::RequestBuilder {
        let request = self.http.post(format!("{}/chat/{conversation}", self.url));
        request
            .bearer_auth(format!("of-{user}"))
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    async fn say(&self, user: &str, message: &str) -> Events {
        let request = self.post(user, "c", &json!({"message": message}));
        Events::of(within(request.send()).await.unwrap())
    }

    /// The texts of a conversation, as the next turn would be sent it.
    async fn texts(&self, user: &str) -> Vec<String> {
        let key = ConversationKey::in_tenant(user, "c").unwrap();
        self.memory.transcript(&key).await.unwrap().iter().map(Message::text).collect()
    }

    async fn end(self) -> ChatMemoryAdvisor {
        self.end.send(()).unwrap();
        within(self.serving).await.unwrap().unwrap();
        self.memory
    }
}

/// A reader of the logs cannot act as a user.
#[tokio::test]
async fn debug_of_the_service_shows_no_token() {
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let users = [("canary".to_owned(), User { name: "ada".to_owned() })];
    let service = Service::new(ScriptedModel::new([]), memory, users).unwrap();
    let text = format!("{service:?}");
    assert!(text.contains("users: 1") && !text.contains("canary"), "{text}");
}

/// The events of an answer, read one by one.
struct Events {
    response: Response,
    bytes: Vec<u8>,
}

impl Events {
    fn of(response: Response) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, bytes: Vec::new() }
    }

    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some(end) = self.bytes.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<_> = self.bytes.drain(..end + 2).collect();
                let event = String::from_utf8(event).unwrap();
                let field = |name: &str| {
                    event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim).unwrap_or_default()
                };
                return Some((field("event:").to_owned(), serde_json::from_str(field("data:")).unwrap()));
            }
            self.bytes.extend(within(self.response.chunk()).await.unwrap()?);
        }
    }

    /// The text until the last event, and that.
    async fn read(mut self) -> (String, String, Value) {
        let mut text = String::new();
        loop {
            let (name, data) = self.next().await.expect("the answer ends without its last event");
            match name.as_str() {
                "text" => text += data["text"].as_str().unwrap(),
                "done" | "error" => {
                    assert_eq!(self.next().await, None, "something follows");
                    return (text, name, data);
                }
                _ => {}
            }
        }
    }
}

async fn refused(request: reqwest::RequestBuilder) -> (StatusCode, Option<String>, Value) {
    let response = within(request.send()).await.unwrap();
    let retry_after = response.headers().get("retry-after").map(|after| after.to_str().unwrap().to_owned());
    let status = response.status();
    let body = within(response.text()).await.unwrap();
    (status, retry_after, serde_json::from_str(&body).unwrap_or(Value::String(body)))
}

fn two_parts(gate: &Gate) -> Answer {
    Answer::new().text("So far ").gate(gate).text("so good").done()
}

#[tokio::test]
async fn text_arrives_while_the_model_still_answers() {
    let gate = Gate::new();
    let service = Running::start(ScriptedModel::new([two_parts(&gate)]), LONG).await;
    let mut events = service.say("ann", "Hi").await;
    assert_eq!(events.next().await.unwrap(), ("text".into(), json!({"text": "So far "})));
    gate.release();
    let (text, name, data) = events.read().await;
    assert_eq!((text.as_str(), name.as_str(), &data["finish"]), ("so good", "done", &json!("stop")));
    let memory = service.end().await;
    assert_eq!(memory.transcript(&ConversationKey::in_tenant("ann", "c").unwrap()).await.unwrap().len(), 2);
}

#[tokio::test]
async fn output_shown_to_disconnected_client_is_remembered() {
    let gate = Gate::new();
    let model = ScriptedModel::new([two_parts(&gate), Answer::from_text("Here I am.")]);
    let service = Running::start(model.clone(), LONG).await;
    let mut events = service.say("ann", "Hi").await;
    events.next().await.unwrap();
    drop(events);
    // The service learns of it, drops the turn and writes its end, although no request follows.
    let key = ConversationKey::in_tenant("ann", "c").unwrap();
    let partial = within(async {
        loop {
            let log = service.store.read(&key, EntryId::BEGINNING, 100).await.unwrap();
            let ended = log.into_iter().find_map(|entry| match entry.kind {
                EntryKind::TurnEnded(TurnEnd::Interrupted { partial }) => Some(partial),
                _ => None,
            });
            match ended {
                Some(partial) => break partial,
                None => tokio::task::yield_now().await,
            }
        }
    });
    assert_eq!(partial.await, "So far ");
    assert_eq!(service.say("ann", "Still there?").await.read().await.0, "Here I am.");
    let texts = service.texts("ann").await;
    assert_eq!(texts.len(), 4, "{texts:?}");
    assert!(texts[1].starts_with("So far") && texts[1].contains("interrupted"), "{texts:?}");
    assert_eq!(model.prompts()[1].messages.len(), 3);
}

#[tokio::test]
async fn pending_writes_after_disconnect_finish_at_shutdown() {
    let store = FaultStore::new(InMemoryStore::new());
    let model = ScriptedModel::new([Answer::new().text("So far").hang()]);
    let service = Running::start_with(model, Arc::new(store.clone()), LONG).await;
    let mut events = service.say("ann", "Hi").await;
    events.next().await.unwrap();
    store.fail_at(store.operations(), StoreFault::Unavailable);
    drop(events);
    within(async {
        while store.pending_faults() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    service.end().await;
    let key = ConversationKey::in_tenant("ann", "c").unwrap();
    let log = store.read(&key, EntryId::BEGINNING, 100).await.unwrap();
    let end = EntryKind::TurnEnded(TurnEnd::Interrupted { partial: "So far".into() });
    assert_eq!(log.last().map(|entry| &entry.kind), Some(&end));
}

#[tokio::test]
async fn concurrent_second_turn_conflicts_without_affecting_other_users() {
    let gate = Gate::new();
    let model = ScriptedModel::new([two_parts(&gate), Answer::from_text("Hello, Bob.")]);
    let service = Running::start(model, LONG).await;
    let mut first = service.say("ann", "Hi").await;
    first.next().await.unwrap();
    let (status, _, body) = refused(service.post("ann", "c", &json!({"message": "And?"}))).await;
    assert_eq!((status, &body["error"]), (StatusCode::CONFLICT, &json!("conversation_busy")));
    assert_eq!(service.say("bob", "Hi").await.read().await.0, "Hello, Bob.");
    gate.release();
    first.read().await;
    assert_eq!(service.texts("ann").await, ["Hi", "So far so good"]);
    assert_eq!(service.texts("bob").await, ["Hi", "Hello, Bob."]);
}

#[tokio::test]
async fn error_before_answer_is_status_hiding_provider_details() {
    let retry_after = Some(Duration::from_millis(6_500));
    let kinds = [
        (ErrorKind::RateLimited { retry_after }, 429, Some("7")),
        (ErrorKind::Authentication, 502, None),
        (ErrorKind::Provider { status: Some(500) }, 502, None),
        (ErrorKind::Connection, 502, None),
        (ErrorKind::Timeout, 504, None),
        (ErrorKind::ContextOverflow, 413, None),
        (ErrorKind::Store, 503, None),
        (ErrorKind::Advisor, 500, None),
        (ErrorKind::Configuration, 500, None),
    ];
    for (kind, status, after) in kinds {
        let model = ScriptedModel::new([Answer::refused(Error::new(kind, "the key sk-1 of the provider"))]);
        let service = Running::start(model, LONG).await;
        let answer = refused(service.post("ann", "c", &json!({"message": "Hi"}))).await;
        assert_eq!((answer.0.as_u16(), answer.1.as_deref()), (status, after), "{kind:?}");
        assert_eq!(answer.2["error"], kind.as_str());
        assert!(!answer.2.to_string().contains("sk-1"), "{}", answer.2);
    }
}

#[tokio::test]
async fn error_after_answer_began_is_last_event() {
    let error = Error::new(ErrorKind::Connection, "10.0.0.1 hung up");
    let model = ScriptedModel::new([Answer::new().text("So far").error(error)]);
    let service = Running::start(model, LONG).await;
    let (text, name, data) = service.say("ann", "Hi").await.read().await;
    assert_eq!((text.as_str(), name.as_str(), data), ("So far", "error", json!({"error": "connection"})));
    assert!(service.texts("ann").await[1].starts_with("So far"));
}

#[tokio::test]
async fn invalid_request_is_refused_without_model_call() {
    let model = ScriptedModel::new([]);
    let service = Running::start(model.clone(), LONG).await;
    let hi = json!({"message": "Hi"});
    let without_user = service.http.post(format!("{}/chat/c", service.url));
    let without_user = without_user.header("content-type", "application/json").body(hi.to_string());
    let cases = [
        (without_user, 401),
        (service.post("eve", "c", &hi), 401),
        (service.post("ann", "c", &json!({"message": " \n"})), 400),
        (service.post("ann", &"x".repeat(513), &hi), 400),
        (service.post("ann", "c", &hi).header("idempotency-key", ""), 400),
        (service.post("ann", "c", &hi).header("idempotency-key", "x".repeat(2000)), 400),
        (service.post("ann", "c", &json!({"text": "Hi"})), 422),
    ];
    for (number, (request, expected)) in cases.into_iter().enumerate() {
        assert_eq!(refused(request).await.0.as_u16(), expected, "request {number}");
    }
    let (_, _, body) = refused(service.post("ann", "c", &hi).header("idempotency-key", "a b")).await;
    assert!(body["message"].as_str().unwrap().contains("a turn id has 1 to 128 characters"), "{body}");
    assert_eq!(model.calls(), 0);
}

#[tokio::test]
async fn resent_request_is_answered_once() {
    let model = ScriptedModel::new([Answer::from_text("Paid.")]);
    let service = Running::start(model.clone(), LONG).await;
    let request = || service.post("ann", "c", &json!({"message": "Pay."})).header("idempotency-key", "k1");
    for _ in 0..2 {
        let (text, name, data) = Events::of(within(request().send()).await.unwrap()).read().await;
        assert_eq!((text.as_str(), name.as_str(), &data["turn"]), ("Paid.", "done", &json!("k1")));
    }
    assert_eq!(model.calls(), 1);
    let other = service.post("ann", "c", &json!({"message": "Pay twice."})).header("idempotency-key", "k1");
    assert_eq!(refused(other).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(service.texts("ann").await, ["Pay.", "Paid."]);
}

#[tokio::test]
async fn a_tool_knows_who_asks() {
    let call = || Answer::from_calls([("c1", "order", r#"{"number": 7}"#)]);
    let answer = || Answer::new().text("Soon.").finish(FinishReason::Stop);
    let model = ScriptedModel::new([call(), answer(), call(), answer()]);
    let service = Running::start(model.clone(), LONG).await;
    for (asked, user) in [(1, "ann"), (3, "bob")] {
        let mut events = service.say(user, "Where is my order?").await;
        assert_eq!(events.next().await.unwrap(), ("tool".into(), json!({"tool": "order"})));
        events.read().await;
        let result = model.prompts()[asked].messages.iter().last().unwrap().tool_result().unwrap().text();
        assert_eq!(result, format!("Order 7 of {user} is on its way."));
    }
}

#[tokio::test]
async fn a_service_that_ends_lets_its_turns_end() {
    let gate = Gate::new();
    let service = Running::start(ScriptedModel::new([two_parts(&gate)]), LONG).await;
    let mut events = service.say("ann", "Hi").await;
    events.next().await.unwrap();
    let Running { url, end, serving, memory, .. } = service;
    end.send(()).unwrap();
    // Nobody is let in any more.
    within(async {
        while TcpStream::connect(url.trim_start_matches("http://")).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(!serving.is_finished());
    gate.release();
    assert_eq!(events.read().await.1, "done");
    within(serving).await.unwrap().unwrap();
    let key = ConversationKey::in_tenant("ann", "c").unwrap();
    assert_eq!(memory.transcript(&key).await.unwrap().iter().last().unwrap().text(), "So far so good");
}

#[tokio::test]
async fn endless_turn_is_stopped_and_shown_output_remembered() {
    let model = ScriptedModel::new([Answer::new().text("So far").hang(), Answer::new().hang()]);
    let service = Running::start(model.clone(), Duration::ZERO).await;
    let mut events = service.say("ann", "Hi").await;
    events.next().await.unwrap();
    let memory = service.end().await;
    let (_, name, data) = events.read().await;
    assert_eq!((name.as_str(), data), ("error", json!({"error": "stopping"})));
    let key = ConversationKey::in_tenant("ann", "c").unwrap();
    let told = memory.transcript(&key).await.unwrap();
    assert!(told.iter().last().unwrap().text().starts_with("So far"), "{told:?}");
}

#[tokio::test]
async fn stalled_clients_do_not_block_shutdown() {
    let much = "x".repeat(64 * 1024);
    let answer = (0..1000).fold(Answer::new(), |answer, _| answer.text(much.as_str())).done();
    let service = Running::start(ScriptedModel::new([answer]), Duration::ZERO).await;
    // One does not read its answer, far more than a socket holds; one does not send its question.
    let _unread = service.say("ann", "Hi").await;
    let mut unsent = TcpStream::connect(service.url.trim_start_matches("http://")).await.unwrap();
    let head = "POST /chat/c HTTP/1.1\r\nhost: x\r\nauthorization: Bearer of-bob\r\nexpect: 100-continue\r\n\
                content-type: application/json\r\ncontent-length: 100\r\n\r\n";
    unsent.write_all(head.as_bytes()).await.unwrap();
    let mut goes_on = [0; 12];
    within(unsent.read_exact(&mut goes_on)).await.unwrap();
    assert_eq!(&goes_on, b"HTTP/1.1 100");
    service.end().await;
}

#[tokio::test]
async fn turn_not_started_before_shutdown_is_refused() {
    let (gate, opens) = (Gate::new(), Gate::new());
    let waits = opens.clone();
    // The model is asked, and does not even begin to answer: no status is known yet.
    let model = Slow { asked: gate.clone(), opens: waits };
    let service = Running::start(model, Duration::ZERO).await;
    let request = service.post("ann", "c", &json!({"message": "Hi"}));
    let asking = tokio::spawn(request.send());
    within(gate.reached()).await;
    service.end().await;
    let response = within(asking).await.unwrap().unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["retry-after"], "1");
}

/// A model that opens no stream until it is let to.
struct Slow {
    asked: Gate,
    opens: Gate,
}

#[advisor_chain::async_trait]
impl ChatModel for Slow {
    async fn stream(
        &self,
        request: advisor_chain::ChatRequest,
    ) -> advisor_chain::Result<advisor_chain::ChunkStream> {
        self.asked.release();
        self.asked.pass().await;
        self.opens.pass().await;
        ScriptedModel::new([Answer::from_text("late")]).stream(request).await
    }
}
