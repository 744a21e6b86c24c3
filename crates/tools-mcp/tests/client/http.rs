//! Servers over streamable HTTP.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use advisor_core::ErrorKind;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tools_mcp::McpServer;

use crate::scripted::Scripted;
use crate::{call, text_of};

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
        let (running, runtime) = (Running::new("127.0.0.1:0", routes(&scripted)), runtime());
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
    let running = Running::new("127.0.0.1:0", routes(&Scripted::new(["refuse"])));
    run(async {
        let tools = running.server().with_bearer("s3cret").connect().await.unwrap();
        let (_, result) = call(&tools, "refuse", "{}").await;
        assert_eq!(text_of(&result), "the server `files` refused the call: bad key …");
    });
}

/// The key is part of the address, and the text is cut within it.
#[test]
fn law_r3_address_in_texts_of_a_server_is_redacted() {
    let running = Running::new("127.0.0.1:0", routes(&Scripted::new(["refuse", "refuse_long"])));
    run(async {
        let tools = running.server().connect().await.unwrap();
        let (_, result) = call(&tools, "refuse", "{}").await;
        assert_eq!(text_of(&result), "the server `files` refused the call: bad key …");
        let tools = running.server().with_bearer("s3cret-and-long").connect().await.unwrap();
        let (_, result) = call(&tools, "refuse_long", "{}").await;
        assert!(result.is_error && !text_of(&result).contains("s3cr"), "{result:?}");
    });
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
        let running = Running::new("127.0.0.1:0", routes(&scripted));
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
        (StatusCode::TOO_MANY_REQUESTS, "", ErrorKind::RateLimited { retry_after: None }),
        (StatusCode::BAD_GATEWAY, "s3cret", ErrorKind::Provider { status: Some(502) }),
        (StatusCode::OK, "<p>s3cret</p>", ErrorKind::Protocol { position: None }),
        (StatusCode::FOUND, "", ErrorKind::Provider { status: Some(302) }),
    ];
    for (status, body, kind) in kinds {
        let router =
            Router::new().fallback(async move || (status, [("location", "http://127.0.0.1:1")], body));
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
