//! A real listener: its addresses, clients that go away, and the end of the server.

use std::net::SocketAddr;
use std::time::Duration;

use advisor_server::serve;
use advisor_testkit::{Answer, Gate};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::connection::{connect, read_until, served};
use crate::setting::{LIMIT, Setting, setting};

/// Serves until the signal, and then for this time. Returns the address, the signal and the server.
async fn serving(
    setting: &Setting,
    time: Duration,
) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<std::io::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let signal = async { drop(stopped.await) };
    (address, stop, tokio::spawn(serve(listener, setting.server.clone(), signal, time)))
}

#[tokio::test]
async fn running_turn_ends_before_the_server() {
    let gate = Gate::new();
    let setting = setting([Answer::new().text("It is ").gate(&gate).text("sunny.").done()]);
    let (address, stop, serving) = serving(&setting, LIMIT).await;
    let mut client = connect(address, "/api/chat", r#"{"message":"How is it?","conversation":"c1"}"#).await;
    read_until(&mut client, "It is ").await;
    stop.send(()).unwrap();
    // Once no further turn is taken, the running one may end.
    loop {
        let mut late = connect(address, "/api/chat", r#"{"message":"Too late?","conversation":"c2"}"#).await;
        if read_until(&mut late, "\r\n\r\n").await.starts_with("HTTP/1.1 503") {
            break;
        }
    }
    // A balancer learns that it should send nothing more, and that the process is not dead.
    for (path, status) in [("/readyz", "HTTP/1.1 503"), ("/healthz", "HTTP/1.1 200")] {
        let mut probe = TcpStream::connect(address).await.unwrap();
        probe.write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await.unwrap();
        let read = read_until(&mut probe, "\r\n\r\n").await;
        assert!(read.starts_with(status), "{path}: {read}");
    }
    gate.release();
    read_until(&mut client, "[DONE]").await;
    tokio::time::timeout(LIMIT, serving).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn law_k2_turn_beyond_the_time_is_stopped_and_kept() {
    let setting = setting([Answer::new().text("It is").hang()]);
    let (address, stop, serving) = serving(&setting, Duration::from_millis(10)).await;
    let mut client = connect(address, "/api/chat", r#"{"message":"How is it?","conversation":"c1"}"#).await;
    read_until(&mut client, "It is").await;
    stop.send(()).unwrap();
    read_until(&mut client, "the request was cancelled").await;
    tokio::time::timeout(LIMIT, serving).await.unwrap().unwrap().unwrap();
    assert!(setting.texts().await[1].starts_with("It is"));
}

#[tokio::test]
async fn law_k2_application_that_nests_the_server_stops_turns() {
    let setting = setting([Answer::new().text("It is").hang()]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let app = axum::Router::new().nest("/desk", setting.server.router());
    let shutdown = async { drop(stopped.await) };
    let serving = tokio::spawn(axum::serve(listener, app).with_graceful_shutdown(shutdown).into_future());
    let mut client =
        connect(address, "/desk/api/chat", r#"{"message":"How is it?","conversation":"c1"}"#).await;
    read_until(&mut client, "It is").await;
    let running = setting.read().await;
    assert!(running["running"].is_string(), "{running}");
    stop.send(()).unwrap();
    setting.server.stop(Duration::from_millis(10)).await.unwrap();
    drop(client);
    tokio::time::timeout(LIMIT, serving).await.unwrap().unwrap().unwrap();
    let read = setting.read().await;
    assert!(read["messages"][1]["text"].as_str().unwrap().starts_with("It is"), "{read}");
    assert_eq!(read["messages"][1]["turn"], read["messages"][0]["turn"], "{read}");
    assert!(read["running"].is_null(), "{read}");
}

/// A client that sends nothing, or its head a byte now and then, does not keep a connection.
#[tokio::test(start_paused = true)]
async fn connection_without_a_head_is_closed() {
    let setting = setting([]).limited(|limits| limits.head_timeout = Duration::from_secs(9));
    let (address, serving) = served(setting.server).await;
    for head in ["", "POST /api/chat HTTP/1.1\r\nhost: local"] {
        let since = Instant::now();
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(head.as_bytes()).await.unwrap();
        let mut read = Vec::new();
        // The end, or a reset.
        let _ = client.read_to_end(&mut read).await;
        assert!(read.is_empty(), "{}", String::from_utf8_lossy(&read));
        assert_eq!(since.elapsed().as_secs(), 9, "{head:?}");
    }
    serving.abort();
}

/// Connections that are idle, or in the middle of a request, end with the server.
#[tokio::test]
async fn open_connections_do_not_delay_the_end() {
    let (address, stop, serving) = serving(&setting([]), LIMIT).await;
    let head = "POST /api/chat HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{";
    let mut clients = Vec::new();
    for sent in ["", "POST /api/ch", head] {
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(sent.as_bytes()).await.unwrap();
        clients.push(client);
    }
    // All of them are accepted before this one.
    let mut last = connect(address, "/nothing", "").await;
    read_until(&mut last, "404").await;
    stop.send(()).unwrap();
    tokio::time::timeout(LIMIT, serving).await.unwrap().unwrap().unwrap();
    for mut client in clients {
        let mut read = Vec::new();
        let ended = tokio::time::timeout(LIMIT, client.read_to_end(&mut read)).await;
        assert!(ended.is_ok() && read.is_empty(), "the connection is closed: {read:?}");
    }
}
