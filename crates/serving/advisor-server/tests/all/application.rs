//! A server inside an application that has its own users.

use std::sync::{Arc, Mutex};

use advisor_core::{Prompt, ToolDefinition};
use advisor_server::{AllowedOrigins, ChatServer, serve};
use advisor_testkit::Answer;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tool_call_advisor::{FnTool, ToolCallAdvisor};
use tower::ServiceExt;

use crate::setting::{LIMIT, chain, json_of, post, refused, setting, text};

/// A user whom the application has recognised.
#[derive(Debug, Clone, PartialEq)]
struct Login(String);

fn server(answers: impl IntoIterator<Item = Answer>) -> ChatServer {
    setting(answers).server.with_authentication(|head| Some(head.extensions.get::<Login>()?.0.clone()))
}

/// Sends a request through the application, which recognises users by a cookie.
async fn send(server: &ChatServer, request: Request<Body>) -> axum::response::Response {
    let login = from_fn(|mut request: axum::extract::Request, next: Next| async {
        let cookie =
            request.headers().get("cookie").and_then(|cookie| cookie.to_str().ok()).map(str::to_owned);
        if let Some(user) = cookie.as_deref().and_then(|cookie| cookie.strip_prefix("user=")) {
            request.extensions_mut().insert(Login(user.to_owned()));
        }
        next.run(request).await
    });
    let application = axum::Router::new().merge(server.router()).layer(login);
    tokio::time::timeout(LIMIT, application.oneshot(request)).await.unwrap().into_response()
}

fn asking(user: &str) -> axum::http::request::Builder {
    post("/api/chat").header("cookie", format!("user={user}")).header("host", "chat.example.org")
}

fn body() -> Body {
    Body::from(json!({"message": "Hello", "conversation": "c1"}).to_string())
}

#[tokio::test]
async fn application_authenticates_its_users() {
    let server = server([Answer::from_text("Hello, Ann.")]);
    text(send(&server, asking("ann").body(body()).unwrap()).await).await;
    for (user, listed) in [("ann", json!(["c1"])), ("bob", json!([]))] {
        let get = Request::get("/api/conversations").header("cookie", format!("user={user}"));
        let read = json_of(send(&server, get.body(Body::empty()).unwrap()).await).await;
        assert_eq!(read["conversations"], listed, "{user}");
    }
    let nobody = send(&server, post("/api/chat").body(body()).unwrap()).await;
    assert_eq!(refused(nobody, StatusCode::UNAUTHORIZED).await, "unauthorized");
}

/// A browser adds a session's cookies to requests of any page, and a request without a body needs no preflight.
#[tokio::test]
async fn page_of_another_site_cannot_use_a_session() {
    let server = server([]);
    let stop = |server: ChatServer| async move {
        let request = post("/api/conversations/c1/stop").header("cookie", "user=ann");
        let request = request.header("sec-fetch-site", "cross-site").header("origin", "https://a.example");
        send(&server, request.body(Body::empty()).unwrap()).await
    };
    assert_eq!(refused(stop(server.clone()).await, StatusCode::FORBIDDEN).await, "forbidden");
    // Without TLS, a browser sends the origin alone.
    let plain =
        post("/api/conversations/c1/stop").header("cookie", "user=ann").header("host", "chat.example");
    let plain = plain.header("origin", "http://a.example").body(Body::empty()).unwrap();
    assert_eq!(send(&server, plain).await.status(), StatusCode::FORBIDDEN);
    let allowing = server.with_allowed_origins(AllowedOrigins::new(["https://a.example"]).unwrap());
    assert_eq!(stop(allowing).await.status(), StatusCode::NO_CONTENT);
}

/// The page speaks of the login of the application, not of tokens.
#[tokio::test]
async fn page_knows_of_the_login() {
    for (server, login) in [(server([]), "application"), (setting([]).server, "token")] {
        let request = Request::get("/").header("host", "localhost").body(Body::empty()).unwrap();
        let page = text(server.router().oneshot(request).await.unwrap()).await;
        assert!(page.contains(&format!("data-login=\"{login}\"")), "{login}");
    }
}

#[tokio::test]
async fn server_with_authentication_serves_other_machines() {
    let ended = async {};
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    serve(listener, server([]), ended, LIMIT).await.unwrap();
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refused = serve(listener, setting([]).server, async {}, LIMIT).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
}

/// The tools of a turn get what the application knows of its request.
#[tokio::test]
async fn prompt_has_data_of_the_request() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let definition = ToolDefinition::new("look", "Looks.", json!({"type": "object"}));
    let tool = FnTool::with_invocation(definition, move |invocation| {
        noted.lock().unwrap().push(invocation.turn.extensions().get::<Login>());
        async { Ok(Value::Null.into()) }
    });
    let answers =
        [Answer::from_calls([("c1", "look", "{}")]), Answer::from_text("Done."), Answer::from_text("Again.")];
    let tool_loop = ToolCallAdvisor::builder().build().unwrap();
    let change = |prompt: Prompt, head: &Parts| match head.extensions.get::<Login>() {
        Some(login) => prompt.extension(login.clone()).system("Be brief.").conversation("another"),
        None => prompt,
    };
    let setting = chain(answers, |client| client.advisor(tool_loop).tool(tool));
    let setting =
        setting.with(|server| server.with_authentication(|_| Some("everyone".into())).map_prompt(change));
    text(send(&setting.server, asking("ann").body(body()).unwrap()).await).await;
    text(send(&setting.server, post("/api/chat").body(body()).unwrap()).await).await;
    assert_eq!(*seen.lock().unwrap(), [Some(Login("ann".into()))]);
    let prompts = setting.model.prompts();
    assert_eq!(prompts[0].messages.iter().next().unwrap().text(), "Be brief.");
    let sent: Vec<_> = prompts[2].messages.iter().map(advisor_core::Message::text).collect();
    assert_eq!(
        sent,
        ["Hello", "", "null", "Done.", "Hello"],
        "both turns are of the conversation in the body"
    );
}

/// The function that changes prompts may be slow. Other requests do not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_prompt_change_delays_no_other_request() {
    let (entered, is_entered) = tokio::sync::oneshot::channel();
    let (answered, is_answered) = std::sync::mpsc::channel();
    let waiting = Mutex::new(Some((entered, is_answered)));
    let server = setting([Answer::from_text("Hello.")]).server.map_prompt(move |prompt, _| {
        let (entered, is_answered) = waiting.lock().unwrap().take().unwrap();
        entered.send(()).unwrap();
        is_answered.recv_timeout(std::time::Duration::from_secs(5)).expect("another request waits");
        prompt
    });
    let asked = tokio::spawn({
        let server = server.clone();
        async move {
            text(send(&server, post("/api/chat").header("host", "localhost").body(body()).unwrap()).await)
                .await
        }
    });
    tokio::time::timeout(LIMIT, is_entered).await.unwrap().unwrap();
    let stop = post("/api/conversations/c2/stop").header("host", "localhost").body(Body::empty()).unwrap();
    assert_eq!(send(&server, stop).await.status(), StatusCode::NO_CONTENT);
    answered.send(()).ok();
    let events = asked.await.unwrap();
    assert!(events.contains("Hello."), "{events}");
}
