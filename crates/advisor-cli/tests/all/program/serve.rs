//! `advisor serve`: its options, its end, and a start after it was killed in the middle of turns.

use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use advisor_testkit::{ChatTranscript, Gate, ReceivedRequest, ReplayServer, Reply};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;
use tokio::time::timeout;

use crate::common::{LIMIT, advisor, start, told};

/// The turns that are in the middle when the server is killed. Every second one runs a tool.
const TURNS: usize = 10;

const WEATHER: &str = "How is the weather?";

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    async fn start(model: &ReplayServer, file: &Path) -> Self {
        Self::start_with(model, file, &[]).await
    }

    async fn start_with(model: &ReplayServer, file: &Path, more: &[&str]) -> Self {
        let mut command = advisor(&[]);
        command.args(arguments(model)).arg(file).args(more);
        Self::from_command(command).await
    }

    /// Starts the server in a shell that has run this command.
    async fn start_within(limit: &str, model: &ReplayServer, file: &Path) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{limit} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_advisor")]);
        command.args(arguments(model)).arg(file).env("OPENAI_API_KEY", "none");
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        Self::from_command(command).await
    }

    async fn from_command(command: Command) -> Self {
        let mut child = start(command);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = timeout(LIMIT, lines.next_line()).await.unwrap().unwrap().expect("it tells its address");
        let address = line.strip_prefix("http://").unwrap().split('/').next().unwrap().parse().unwrap();
        Self { child, address }
    }

    /// Returns an open connection that was served.
    async fn connected(&self) -> TcpStream {
        let mut client = TcpStream::connect(self.address).await.unwrap();
        client.write_all(HEALTH).await.unwrap();
        read_until(&mut client, "alive").await;
        client
    }

    /// Asks it to end, and waits until it takes no further turn.
    async fn terminate(&self) {
        self.signal();
        while !read_to_end(&mut self.send("GET /readyz HTTP/1.1", "").await).await.starts_with("HTTP/1.1 503")
        {
        }
    }

    fn signal(&self) {
        let id = nix::unistd::Pid::from_raw(self.child.id().unwrap().try_into().unwrap());
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM).unwrap();
    }

    async fn send(&self, head: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request(&format!("{head}\r\nconnection: close"), body).as_bytes()).await.unwrap();
        stream
    }

    async fn ask(&self, conversation: &str, message: &str) -> TcpStream {
        let body = json!({"message": message, "conversation": conversation});
        self.send("POST /api/chat HTTP/1.1", &body.to_string()).await
    }

    async fn messages(&self, conversation: &str) -> Vec<Value> {
        let mut stream = self.send(&format!("GET /api/conversations/{conversation} HTTP/1.1"), "").await;
        let read = read_to_end(&mut stream).await;
        let (head, body) = read.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{conversation}: {read}");
        let body: Value = serde_json::from_str(body).unwrap();
        body["messages"].as_array().unwrap().clone()
    }
}

/// Returns a request with this beginning and JSON.
fn request(head: &str, body: &str) -> String {
    let fields = "host: localhost\r\ncontent-type: application/json";
    format!("{head}\r\n{fields}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// Returns the arguments up to the file of memory.
fn arguments(model: &ReplayServer) -> Vec<String> {
    let base_url = format!("{}/v1", model.url());
    let arguments =
        ["serve", "--listen", "127.0.0.1:0", "--provider", "openai", "--model", "m", "--base-url"];
    arguments.map(str::to_owned).into_iter().chain([base_url, "--memory".to_owned()]).collect()
}

async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut read = String::new();
    timeout(LIMIT, stream.read_to_string(&mut read)).await.unwrap().unwrap();
    read
}

async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut read = String::new();
    while !read.contains(wanted) {
        let mut piece = [0; 1_024];
        let length = timeout(LIMIT, stream.read(&mut piece)).await.expect(wanted).unwrap();
        assert!(length > 0, "the connection ended: {read}");
        read.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
    read
}

/// Returns the roles of the messages that the model got, without instructions.
fn roles(request: &ReceivedRequest) -> Vec<String> {
    let messages = request.json().unwrap()["messages"].as_array().unwrap().clone();
    let roles = messages.iter().map(|message| message["role"].as_str().unwrap().to_owned());
    roles.filter(|role| role != "system").collect()
}

/// Falls silent within each answer until the server was killed, except to ask for the weather.
fn reply(request: &ReceivedRequest, was_killed: bool) -> Reply {
    let answer = || ChatTranscript::new("m");
    let messages = request.json().unwrap()["messages"].clone();
    let last = messages.as_array().unwrap().last().unwrap().clone();
    if was_killed {
        return Reply::sse(answer().text("Here again.").finish("stop").done());
    }
    if last["content"] == WEATHER {
        let call = answer().tool_call(0, "call_1", "demo_weather", &[r#"{"city":"Oslo"}"#]);
        return Reply::sse(call.finish("tool_calls").done());
    }
    let shown = answer().text("It is ").without_done();
    let length = shown.len();
    Reply::sse(answer().text("It is ").text("late.").finish("stop").done()).stall_after(length)
}

#[tokio::test]
async fn conversations_continue_after_server_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("conversations.sqlite");
    let was_killed = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&was_killed);
    let model =
        ReplayServer::start_with(move |request| reply(request, flag.load(Ordering::SeqCst))).await.unwrap();
    let mut server = Server::start(&model, &file).await;
    let turn = |number: usize| match number % 2 {
        0 => (format!("c{number}"), "How late is it?", "It is "),
        _ => (format!("c{number}"), WEATHER, "tool_call_start"),
    };
    let mut clients = Vec::new();
    for (conversation, message, shown) in (0..TURNS).map(turn) {
        let mut client = server.ask(&conversation, message).await;
        let read = read_until(&mut client, shown).await;
        assert!(!read.contains("[DONE]"), "{conversation} is not in the middle: {read}");
        clients.push(client);
    }
    server.child.start_kill().unwrap();
    let status = timeout(LIMIT, server.child.wait()).await.unwrap().unwrap();
    assert_eq!(status.signal(), Some(9), "{status}");
    was_killed.store(true, Ordering::SeqCst);
    drop(clients);

    let server = Server::start(&model, &file).await;
    for (conversation, message, _) in (0..TURNS).map(turn) {
        let opened = server.messages(&conversation).await;
        assert_eq!(
            (&opened[0]["role"], &opened[0]["text"]),
            (&json!("user"), &json!(message)),
            "{conversation}"
        );
        let mut client = server.ask(&conversation, "Are you there?").await;
        let read = read_until(&mut client, "[DONE]").await;
        assert!(read.contains("Here again."), "{conversation}: {read}");
        let sent = roles(&model.requests().pop().unwrap());
        let tool = message == WEATHER;
        let expected: &[_] = match tool {
            true => &["user", "assistant", "tool", "assistant", "user"],
            false => &["user", "assistant", "user"],
        };
        assert_eq!(sent, expected, "{conversation}: each call has its result, and roles alternate");
        let continued = server.messages(&conversation).await;
        let users: Vec<_> = continued
            .iter()
            .filter(|message| message["role"] == "user")
            .map(|message| &message["text"])
            .collect();
        assert_eq!(users, [message, "Are you there?"], "{conversation}");
        assert_eq!(continued.last().unwrap()["text"], "Here again.", "{conversation}");
    }
}

#[tokio::test]
async fn options_reach_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let model = ReplayServer::start([]).await.unwrap();
    let options = [
        "--allow-origin", "https://chat.example.org", "--allow-origin", "http://localhost:3000",
        "--body-limit", "1",
    ];
    let server = Server::start_with(&model, &folder.path().join("c.sqlite"), &options).await;
    let head = "OPTIONS /api/chat HTTP/1.1\r\norigin: http://localhost:3000";
    let allowed = read_to_end(&mut server.send(head, "").await).await;
    assert!(allowed.contains("access-control-allow-origin: http://localhost:3000"), "{allowed}");
    // One byte more than the limit.
    let large = " ".repeat((1 << 20) + 1);
    let refused = read_to_end(&mut server.send("POST /v1/chat/completions HTTP/1.1", &large).await).await;
    assert!(refused.starts_with("HTTP/1.1 413"), "{refused}");
    let file = folder.path().join("other.sqlite");
    let arguments = ["serve", "--allow-origin", "*", "--memory", file.to_str().unwrap()];
    let refused = told(advisor(&arguments), "").await;
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

/// A supervisor's signal ends the server like ctrl-c: the running turn may end, and then the process does.
#[tokio::test]
async fn sigterm_lets_the_turn_end() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::new();
    let shown = ChatTranscript::new("m").text("It is ").without_done();
    let answer = ChatTranscript::new("m").text("It is ").text("late.").finish("stop").done();
    let model =
        ReplayServer::start([Reply::sse(answer).gate_after(shown.len(), gate.clone())]).await.unwrap();
    let mut server = Server::start(&model, &folder.path().join("c.sqlite")).await;
    let mut client = server.ask("c1", "How late is it?").await;
    read_until(&mut client, "It is ").await;
    server.terminate().await;
    gate.release();
    read_until(&mut client, "[DONE]").await;
    let status = timeout(LIMIT, server.child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0), "{status}");
}

/// A second signal does not wait for the turn: it is stopped, and memory has the part that was shown.
#[tokio::test]
async fn second_signal_stops_the_turn() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.sqlite");
    let model = ReplayServer::start_with(|request| reply(request, false)).await.unwrap();
    let mut server = Server::start(&model, &file).await;
    let mut client = server.ask("c1", "How late is it?").await;
    read_until(&mut client, "It is ").await;
    server.terminate().await;
    server.signal();
    // The first signal alone gives the turn 10 seconds.
    let status = timeout(Duration::from_secs(8), server.child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0), "{status}");
    let server = Server::start(&model, &file).await;
    let messages = server.messages("c1").await;
    assert_eq!(messages[1]["text"], "It is [interrupted]", "{messages:?}");
}

/// A file of tokens may have comments, and they are no tokens.
#[tokio::test]
async fn comment_in_the_file_of_tokens_opens_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let tokens = write("tokens", "# comment line\n  # and another\n\nann  the-secret-of-ann\n");
    let model = ReplayServer::start([]).await.unwrap();
    let server = Server::start_with(&model, &folder.path().join("c.sqlite"), &["--tokens", &tokens]).await;
    for (token, status) in
        [("the-secret-of-ann", "200"), ("comment line", "401"), ("comment", "401"), ("and another", "401")]
    {
        let head = format!("GET /api/conversations HTTP/1.1\r\nauthorization: Bearer {token}");
        let answer = read_to_end(&mut server.send(&head, "").await).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{token}: {answer}");
    }
    let file = folder.path().join("other.sqlite");
    let file = file.to_str().unwrap();
    let bad = [
        write("white", "ann two words\n"),
        write("lone", "ann\n"),
        write("empty", "# ann the-secret-of-ann\n"),
        write("short", "ann secret\n"),
        write("shared", "ann the-secret-of-ann\nbob the-secret-of-ann\n"),
    ];
    for tokens in bad {
        let refused = told(advisor(&["serve", "--memory", file, "--tokens", &tokens]), "").await;
        assert_eq!(refused.status.code(), Some(2), "{tokens}: {refused:?}");
    }
}

/// The limit of open files that a shell sets by default is lower than what the system allows.
#[tokio::test]
async fn open_files_are_raised_for_connections() {
    let folder = tempfile::tempdir().unwrap();
    let model = ReplayServer::start([]).await.unwrap();
    let server = Server::start_within("ulimit -S -n 64", &model, &folder.path().join("c.sqlite")).await;
    let connected = async {
        let mut clients = Vec::new();
        while clients.len() < 80 {
            clients.push(server.connected().await);
        }
    };
    // Less than the time after which the server closes idle connections.
    timeout(Duration::from_secs(25), connected).await.unwrap();
}

/// Idle connections do not use up the files that a turn needs.
#[tokio::test]
async fn idle_connections_leave_files_for_a_turn() {
    let folder = tempfile::tempdir().unwrap();
    let answer = ChatTranscript::new("m").text("Here.").finish("stop").done();
    let model = ReplayServer::start([Reply::sse(answer)]).await.unwrap();
    let server = Server::start_within("ulimit -n 128", &model, &folder.path().join("c.sqlite")).await;
    let mut first = server.connected().await;
    // As many as the process may open. They wait, as those beyond the bound do.
    let mut idle = Vec::new();
    for _ in 0..128 {
        idle.push(TcpStream::connect(server.address).await.unwrap());
    }
    // Those within the bound are served; then no file is left without it.
    for client in idle.iter_mut().take(95) {
        client.write_all(HEALTH).await.unwrap();
        read_until(client, "alive").await;
    }
    let body = json!({"message": "Hi", "conversation": "c1"}).to_string();
    first.write_all(request("POST /api/chat HTTP/1.1", &body).as_bytes()).await.unwrap();
    read_until(&mut first, "Here.").await;
}
