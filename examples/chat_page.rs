//! The chat page mounted in an application, under a path.
//!
//! Without an argument it reads the page once, and ends. With an address, such as `127.0.0.1:8080`, it serves until
//! ctrl-c: open `http://127.0.0.1:8080/assistant`.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::time::Duration;

use advisor_chain::server::ChatServer;
use advisor_chain::{ChatMemoryAdvisor, InMemoryStore, Role, client};
use advisor_testkit::{Answer, ScriptedModel};
use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;

type Failed = Box<dyn Error>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let url = format!("http://{}/assistant", listener.local_addr()?);
    println!("{url} has the chat page.");
    let server = server()?;
    let serving = axum::serve(listener, application(&server));
    if address.is_some() {
        let signal = async move {
            let _ = tokio::signal::ctrl_c().await;
            // Running turns end first, since their connections are waited for.
            let _ = server.stop(Duration::from_secs(10)).await;
        };
        return Ok(serving.with_graceful_shutdown(signal).await?);
    }
    tokio::select! {
        ended = serving => Ok(ended?),
        page = read(&url) => {
            println!("It names its files under its path:");
            page?.lines().filter(|line| line.contains("./assistant/")).for_each(|line| println!("{line}"));
            Ok(())
        }
    }
}

/// Returns an application that has another page beside the chat.
fn application(server: &ChatServer) -> Router {
    Router::new()
        .route("/", get(|| async { "The chat is at /assistant." }))
        // `nest` has it at `/assistant` alone, `nest_service` also at `/assistant/`.
        .nest_service("/assistant", server.router())
}

fn server() -> Result<ChatServer, Failed> {
    let model = ScriptedModel::from_fn(|prompt| {
        let count = prompt.messages.iter().filter(|message| message.role() == Role::User).count();
        Answer::from_text(format!("This is *message {count}* of the conversation."))
    });
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = client(model).advisor(memory.clone()).build()?;
    Ok(ChatServer::new(client, memory))
}

async fn read(url: &str) -> Result<String, Failed> {
    // The client library requires a choice of TLS, also for connections without TLS.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(reqwest::get(url).await?.error_for_status()?.text().await?)
}
