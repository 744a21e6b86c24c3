//! Ten thousand connections are opened and dropped, and nothing of them is left. The test is alone in its program, whose
//! tasks and files it counts.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::time::Duration;

use advisor_core::ChatClient;
use advisor_server::{ChatServer, serve};
use advisor_testkit::{Answer, ScriptedModel};
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
use futures::{StreamExt, stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::time::timeout;

const CONNECTIONS: usize = 10_000;

/// The connections that are open at once. Each has two files in this process.
const OPEN: usize = 300;

/// The longest wait for anything. No wait is near it.
const LIMIT: Duration = Duration::from_secs(60);

/// What the process holds.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    tasks: usize,
    files: usize,
}

impl Held {
    fn now() -> Self {
        let files = std::fs::read_dir("/proc/self/fd").unwrap().count();
        Self { tasks: Handle::current().metrics().num_alive_tasks(), files }
    }
}

async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut read = String::new();
    while !read.contains(wanted) {
        let mut piece = [0; 1_024];
        let length = timeout(LIMIT, stream.read(&mut piece)).await.unwrap().unwrap();
        assert!(length > 0, "the connection ended: {read}");
        read.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
    read
}

/// Opens a connection and drops it: silent, within the head, within the body, within the answer, or after it.
async fn open_and_drop(address: SocketAddr, number: usize) {
    let mut stream = timeout(LIMIT, TcpStream::connect(address)).await.unwrap().unwrap();
    let body = r#"{"messages":[{"role":"user","content":"Hi"}],"stream":true}"#;
    let length = body.len();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    match number % 5 {
        0 => {}
        1 => stream.write_all(&head.as_bytes()[..40]).await.unwrap(),
        2 => stream.write_all(format!("{head}{}", &body[..20]).as_bytes()).await.unwrap(),
        3 => {
            stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
            read_until(&mut stream, "It is").await;
        }
        _ => {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
            read_until(&mut stream, "alive").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_r2_dropped_connections_leave_nothing() {
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let model = ScriptedModel::from_fn(|_| Answer::new().text("It is").hang());
    let client = ChatClient::builder(model.clone()).advisor(memory.clone()).build().unwrap();
    let server = ChatServer::new(client, memory);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(serve(listener, server, std::future::pending(), LIMIT));
    open_and_drop(address, 4).await;
    let before = Held { tasks: 1, files: until_alone().await };
    stream::iter(0..CONNECTIONS).for_each_concurrent(OPEN, |number| open_and_drop(address, number)).await;
    assert_eq!(model.calls(), CONNECTIONS / 5);
    let nothing_is_left = async {
        while Held::now() != before {
            tokio::task::yield_now().await;
        }
    };
    let ended = timeout(LIMIT, nothing_is_left).await;
    assert!(ended.is_ok(), "{:?} are left of {before:?}", Held::now());
    serving.abort();
}

/// Waits until only the task of the server is left, and returns the number of files.
async fn until_alone() -> usize {
    let alone = async {
        while Held::now().tasks > 1 {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, alone).await.unwrap();
    Held::now().files
}
