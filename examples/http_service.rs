//! A chat over HTTP: server-sent events, statuses, users, repeated requests, an end in good order.
//!
//! Without an argument it serves a scripted model, asks it twice, and ends. With an address, such as `127.0.0.1:8080`,
//! it serves the model of `OPENAI_MODEL`, `OPENAI_BASE_URL` and `OPENAI_API_KEY` until ctrl-c:
//!
//! ```text
//! curl -N 127.0.0.1:8080/chat/c1 -H 'authorization: Bearer secret' -H 'content-type: application/json' \
//!   -d '{"message": "Where is my order 7?"}'
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::time::Duration;

use advisor_chain::{ChatMemoryAdvisor, InMemoryStore, OpenAiModel};
use advisor_examples::chat_service::{Service, User, serve};
use advisor_testkit::{Answer, ScriptedModel};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

type Failed = Box<dyn Error>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let users = [(String::from("secret"), User { name: String::from("ann") })];
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let patience = Duration::from_secs(10);
    if let Some(address) = std::env::args().nth(1) {
        let service = Service::new(OpenAiModel::from_env()?, memory, users)?;
        let signal = async {
            let _ = tokio::signal::ctrl_c().await;
        };
        return Ok(serve(TcpListener::bind(address).await?, service, signal, patience).await?);
    }
    let model = ScriptedModel::new([
        Answer::from_calls([("c1", "order", r#"{"number": 7}"#)]),
        Answer::new().text("It is ").text("on its way.").done(),
    ]);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/chat/c1", listener.local_addr()?);
    let (end, ended) = oneshot::channel::<()>();
    let signal = async {
        let _ = ended.await;
    };
    let service = Service::new(model, memory, users)?;
    let serving = tokio::spawn(serve(listener, service, signal, patience));
    // The second request is the first one again, such as after a connection that broke: the model is not asked.
    for _ in 0..2 {
        println!("{}", ask(&url, r#"{"message": "Where is my order 7?"}"#).await?);
    }
    let _ = end.send(());
    Ok(serving.await??)
}

async fn ask(url: &str, body: &'static str) -> Result<String, Failed> {
    // The client library requires a choice of TLS, also for connections without TLS.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let request = reqwest::Client::new().post(url).bearer_auth("secret").header("idempotency-key", "q1");
    let response = request.header("content-type", "application/json").body(body).send().await?;
    Ok(format!("{}\n{}", response.status(), response.text().await?))
}
