//! Servers over streamable HTTP.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use advisor_core::ErrorKind;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tools_mcp::McpServer;

use crate::client::scripted::Scripted;
use crate::client::{call, text_of};

/// These tests wait for real connections, so their clock runs.
const LIMIT: Duration = Duration::from_secs(60);

fn routes(server: &Scripted) -> Router {
    let server = server.clone();
    let config = StreamableHttpServerConfig::default();
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    Router::new().fallback_service(service)
}

/// A server on its own runtime, which ends with all its connections.
struct Running(Option<Runtime>, SocketAddr);

impl Running {
    fn new(address: &str, router: Router) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind(address)).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self(Some(runtime), address)
    }

    fn serving(server: &Scripted) -> Self {
        Self::new("127.0.0.1:0", routes(server))
    }

    fn server(&self) -> McpServer {
        McpServer::from_url(format!("http://{}/mcp?key=s3cret", self.1)).with_name("files")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.take().unwrap().shutdown_background();
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Runs a test beside its servers, whose runtimes cannot begin inside of one.
fn run<F: Future>(test: F) -> F::Output {
    runtime().block_on(async { timeout(LIMIT, test).await.expect("the test ends") })
}

#[test]
fn law_t2_lost_server_over_http_is_an_error_result() {
    for scripted in [Scripted::new(["echo"]), Scripted::legacy(["echo"])] {
        let (running, runtime) = (Running::serving(&scripted), runtime());
        let address = running.1.to_string();
        let tools = runtime.block_on(running.server().connect()).unwrap();
        drop(running);
        let (_, result) = runtime.block_on(call(&tools, "echo", "{}"));
        assert!(result.is_error);
        assert_eq!(text_of(&result), "the server `files` is gone; the outcome is unknown");
        let (_, result) = runtime.block_on(call(&tools, "echo", "{}"));
        assert!(result.is_error);
        assert_eq!(text_of(&result), "not started: the MCP server `files` cannot be reached");

        let _again = Running::new(&address, routes(&scripted));
        // The failure is remembered for a second.
        let again = async { while call(&tools, "echo", "{}").await.1.is_error {} };
        runtime.block_on(async { timeout(LIMIT, again).await }).expect("the next connection succeeds");
    }
}

#[test]
fn law_r3_token_in_texts_of_a_server_is_redacted() {
    let running = Running::serving(&Scripted::new(["refuse", "refuse_long"]));
    run(async {
        let in_the_address = running.server();
        for server in [in_the_address, running.server().with_bearer("s3cret")] {
            let (_, result) = call(&server.connect().await.unwrap(), "refuse", "{}").await;
            assert_eq!(text_of(&result), "the server `files` refused the call: bad key …");
        }
        // The text is cut within the key.
        let tools = running.server().with_bearer("s3cret-and-long").connect().await.unwrap();
        let (_, result) = call(&tools, "refuse_long", "{}").await;
        assert!(result.is_error && !text_of(&result).contains("s3cr"), "{result:?}");
    });
}

/// The proxy of the environment does not know this machine, and must not read the token. The variables are those of another
/// process, which runs only this test.
#[test]
fn law_r3_server_on_this_machine_is_asked_without_a_proxy() {
    if std::env::var_os("HTTP_PROXY").is_some() {
        let running = Running::serving(&Scripted::new(["echo"]));
        run(async {
            let tools = running.server().with_bearer("s3cret").connect().await.unwrap();
            assert!(!call(&tools, "echo", "{}").await.1.is_error);
        });
        return;
    }
    let proxy = StdListener::bind("127.0.0.1:0").unwrap();
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "client::http::law_r3_server_on_this_machine_is_asked_without_a_proxy"]);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        test.env(name, format!("http://{}", proxy.local_addr().unwrap()));
    }
    // The connection of a proxied request would wait here for ever.
    proxy.set_nonblocking(true).unwrap();
    let ended = test.env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap();
    assert!(ended.status.success() && proxy.accept().is_err(), "{ended:?}");
}

#[test]
fn token_and_headers_are_sent() {
    let check = async |request: Request, next: Next| {
        let admitted = {
            let is_sent = |name: &str, value| request.headers().get(name).is_some_and(|sent| sent == value);
            is_sent("authorization", "Bearer s3cret") && is_sent("x-key", "k3y")
        };
        if admitted {
            return next.run(request).await;
        }
        StatusCode::UNAUTHORIZED.into_response()
    };
    let router = routes(&Scripted::new(["echo"])).layer(from_fn(check));
    let running = Running::new("127.0.0.1:0", router);
    let error = run(running.server().with_bearer("s3cret").connect()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Authentication);
    let server = running.server().with_bearer("s3cret").with_header("x-key", "k3y");
    let (_, result) = run(async { call(&server.connect().await.unwrap(), "echo", "{}").await });
    assert_eq!(text_of(&result), "{}");
}

#[test]
fn announced_list_is_read_over_http() {
    for scripted in [Scripted::new(["grow"]), Scripted::legacy(["grow"])] {
        let running = Running::serving(&scripted);
        run(async {
            let tools = running.server().connect().await.unwrap();
            let (_, result) = call(&tools, "grow", "{}").await;
            assert!(!result.is_error, "{result:?}");
            // The announcement has a separate stream, so it may come after the result.
            while tools.tools().await.unwrap().len() != 2 {
                tokio::task::yield_now().await;
            }
        });
    }
}

#[test]
fn answers_of_other_servers_have_their_kind() {
    let kinds = [
        (StatusCode::UNAUTHORIZED, "", ErrorKind::Authentication),
        (StatusCode::FORBIDDEN, "", ErrorKind::Authentication),
        (StatusCode::NOT_FOUND, "s3cret", ErrorKind::NotFound),
        (
            StatusCode::TOO_MANY_REQUESTS,
            "",
            ErrorKind::RateLimited { retry_after: Some(Duration::from_secs(30)) },
        ),
        (StatusCode::BAD_GATEWAY, "s3cret", ErrorKind::Provider { status: Some(502) }),
        (StatusCode::OK, "<p>s3cret</p>", ErrorKind::Protocol { position: None }),
        (StatusCode::FOUND, "", ErrorKind::Provider { status: Some(302) }),
    ];
    for (status, body, kind) in kinds {
        let router = Router::new().fallback(async move || {
            (status, [("location", "http://127.0.0.1:1"), ("retry-after", "30")], body)
        });
        let running = Running::new("127.0.0.1:0", router);
        let error = run(running.server().connect()).unwrap_err();
        assert_eq!(error.kind(), kind, "{status}: {error:?}");
        assert!(
            !format!("{error:?} {}", advisor_core::text_with_sources(&error)).contains("s3cret"),
            "{error:?}"
        );
    }
    let closed = StdListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = run(McpServer::from_url(format!("http://{closed}")).connect()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection);
}

/// A server with sessions, one of which it knows, and the tool `t`. It answers calls in that session by `reply`, and
/// requests in others by `refusal`.
#[derive(Clone)]
struct WithSessions(Arc<Sessions>);

struct Sessions {
    begun: AtomicUsize,
    known: AtomicUsize,
    refusal: Box<Reply>,
    reply: Box<Reply>,
}

type Reply = dyn Fn(&Value) -> Response + Send + Sync;

impl WithSessions {
    fn new(
        refusal: impl Fn(&Value) -> Response + Send + Sync + 'static,
        reply: impl Fn(&Value) -> Response + Send + Sync + 'static,
    ) -> Self {
        let (begun, known) = Default::default();
        Self(Arc::new(Sessions { begun, known, refusal: Box::new(refusal), reply: Box::new(reply) }))
    }

    fn forget(&self) {
        self.0.known.store(0, Ordering::Relaxed);
    }

    fn begun(&self) -> usize {
        self.0.begun.load(Ordering::Relaxed)
    }

    fn router(&self) -> Router {
        let this = self.clone();
        Router::new().fallback(async move |request: Request| this.answer(request).await)
    }

    async fn answer(&self, request: Request) -> Response {
        if request.method() != Method::POST {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        }
        let session = request.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
        let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
        let request: Value = serde_json::from_slice(&body).unwrap();
        let (id, method) = (&request["id"], request["method"].as_str().unwrap_or_default());
        if method == "initialize" {
            let number = self.0.begun.fetch_add(1, Ordering::Relaxed) + 1;
            self.0.known.store(number, Ordering::Relaxed);
            let begun = json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "n", "version": "v"}
            });
            return ([("mcp-session-id", number.to_string())], result(id, &begun)).into_response();
        }
        if session != Some(self.0.known.load(Ordering::Relaxed).to_string()) {
            return (self.0.refusal)(id);
        }
        match method {
            "tools/list" => result(id, &json!({"tools": [{"name": "t", "inputSchema": {}}]})),
            "tools/call" => (self.0.reply)(id),
            _ => StatusCode::ACCEPTED.into_response(),
        }
    }
}

fn result(id: &Value, result: &Value) -> Response {
    Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
}

fn ran(id: &Value) -> Response {
    result(id, &json!({"content": [{"type": "text", "text": "ran"}]}))
}

fn code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap()
}

fn error(status: u16, id: &Value, error: i32, message: &str) -> Response {
    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": error, "message": message}});
    (code(status), Json(error)).into_response()
}

fn no_session(id: &Value) -> Response {
    error(400, id, -32_000, "Bad Request: No valid session ID provided")
}

/// Forms in which servers say that they do not know a session.
#[test]
fn forgotten_session_is_begun_anew_and_the_call_runs() {
    type Refusal = fn(&Value) -> Response;
    let forms: [(&str, Refusal); 6] = [
        ("not found", |id| error(404, id, -32_001, "Session not found")),
        ("without an id", |_| no_session(&Value::Null)),
        ("without the member", |_| {
            let error = json!({"jsonrpc": "2.0", "error": {"code": -32_000, "message": "no session"}});
            (StatusCode::BAD_REQUEST, Json(error)).into_response()
        }),
        ("another id", |_| error(400, &json!("server-error"), -32_600, "Bad Request: no session")),
        ("a text", |_| (StatusCode::BAD_REQUEST, "Bad Request: No valid session ID").into_response()),
        ("no body", |_| StatusCode::BAD_REQUEST.into_response()),
    ];
    for (what, refusal) in forms {
        let server = WithSessions::new(refusal, ran);
        let running = Running::new("127.0.0.1:0", server.router());
        run(async {
            let tools = running.server().connect().await.unwrap();
            for begun in 1..4 {
                let (_, result) = call(&tools, "t", "{}").await;
                assert_eq!((text_of(&result), result.is_error), ("ran", false), "{what}");
                assert_eq!(server.begun(), begun, "{what}");
                server.forget();
            }
        });
    }
}

#[test]
fn refused_and_foreign_answers_over_http_end_a_call_at_once() {
    let key = "not started: the server `files` refuses the key, or needs one";
    let foreign =
        "the server `files` answered in a way that the protocol does not have; the outcome is unknown";
    let gone = "the server `files` is gone; the outcome is unknown";
    let failed = "the server `files` failed at the call: Internal error; the outcome is unknown";
    let bad = "the server `files` failed at the call: it answered with the error status 502; the outcome is unknown";
    let no_session_text =
        "not started: the server `files` refused the call: Bad Request: No valid session ID provided";
    let limited = "not started: the server `files` limits the rate of requests";
    let event =
        |data: Value| ([("content-type", "text/event-stream")], format!("data: {data}\n\n")).into_response();
    let challenge = |status: u16| (code(status), [("www-authenticate", "Bearer")]).into_response();
    let no_id = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32_602, "message": "no"}});
    let other_id = json!({"jsonrpc": "2.0", "id": 1_000, "result": {"content": []}});
    let no_answer = json!({"jsonrpc": "2.0", "method": "notifications/message"});
    let cases: Vec<(&str, Box<Reply>, &str)> = vec![
        ("a refusal in every session", Box::new(|_| no_session(&Value::Null)), no_session_text),
        ("401", Box::new(|_| code(401).into_response()), key),
        ("403", Box::new(|_| code(403).into_response()), key),
        ("401 and JSON", Box::new(|_| error(401, &Value::Null, -32_000, "Unauthorized")), key),
        ("401 and a challenge", Box::new(move |_| challenge(401)), key),
        ("403 and a challenge", Box::new(move |_| challenge(403)), key),
        (
            "429",
            Box::new(|_| (code(429), [("retry-after", "30")]).into_response()),
            "not started: the server `files` limits the rate of requests; try again after 30 s",
        ),
        ("429 without a delay", Box::new(|_| code(429).into_response()), limited),
        (
            "413",
            Box::new(|_| code(413).into_response()),
            "not started: the server `files` answered with the error status 413",
        ),
        ("502", Box::new(|_| code(502).into_response()), bad),
        (
            "a failure of no request",
            Box::new(|_| error(500, &Value::Null, -32_603, "Internal error")),
            failed,
        ),
        ("a failure", Box::new(|id| error(500, id, -32_603, "Internal error")), failed),
        ("the result of another call", Box::new(|_| ran(&json!(1_000))), foreign),
        ("no answer", Box::new(move |_| Json(no_answer.clone()).into_response()), foreign),
        (
            "an event without an id",
            Box::new(move |_| event(no_id.clone())),
            "the server `files` refused the call: no",
        ),
        ("an event of another call", Box::new(move |_| event(other_id.clone())), gone),
        ("no event", Box::new(|_| ([("content-type", "text/event-stream")], "").into_response()), gone),
    ];
    for (what, reply, text) in cases {
        let server = WithSessions::new(no_session, reply);
        let running = Running::new("127.0.0.1:0", server.router());
        run(async {
            let tools = running.server().connect().await.unwrap();
            let (_, result) = call(&tools, "t", "{}").await;
            assert_eq!((text_of(&result), result.is_error), (text, true), "{what}");
        });
    }
}
