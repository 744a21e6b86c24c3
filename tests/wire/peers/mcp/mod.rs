//! The reference server of the Model Context Protocol, which uses all of it, over its two transports. The inspector, a
//! client, against a chain as a server.

mod everything;
mod inspector;

use std::path::PathBuf;
use std::process::Stdio;

use advisor_chain::mcp::McpServer;
use advisor_tests::prelude::*;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(60);

/// The bytes that the client has sent to a server.
#[derive(Clone, Default)]
struct Sent(Arc<watch::Sender<Vec<u8>>>);

impl Sent {
    fn note(&self, bytes: &[u8]) {
        self.0.send_modify(|sent| sent.extend_from_slice(bytes));
    }

    /// Waits until this text was sent.
    async fn contains(&self, text: &str) {
        let mut sent = self.0.subscribe();
        let found = sent.wait_for(|sent| String::from_utf8_lossy(sent).contains(text));
        assert!(timeout(LIMIT, found).await.is_ok_and(|found| found.is_ok()), "{text} is not sent");
    }
}

/// A running server, and what it was sent.
struct Everything {
    server: McpServer,
    sent: Sent,
    /// The process of the server over HTTP; the client starts the other one.
    _process: Option<Child>,
}

/// The folder of the installed packages.
fn packages() -> Option<PathBuf> {
    let packages =
        PathBuf::from(crate::peers::variable("MCP", "FOLDER")?).join("node_modules/@modelcontextprotocol");
    assert!(packages.exists(), "{} is missing", packages.display());
    Some(packages)
}

fn script() -> Option<PathBuf> {
    packages().map(|packages| packages.join("server-everything/dist/index.js"))
}

/// A command without this process's environment, which a tool of the server returns.
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.kill_on_drop(true).stderr(Stdio::null());
    command
}

/// The server over its standard input and output. Both pass through this process, which notes the input.
fn over_stdio(script: PathBuf) -> Everything {
    let sent = Sent::default();
    let notes = sent.clone();
    let server = McpServer::from_stream(move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        let mut process = command("node");
        process.arg(&script).arg("stdio").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = process.spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let (from_client, to_client) = tokio::io::split(far);
        tokio::spawn(noted(from_client, input, notes.clone()));
        tokio::spawn(async move {
            let (mut output, mut to_client) = (output, to_client);
            let _ = tokio::io::copy(&mut output, &mut to_client).await;
            drop(process);
        });
        std::future::ready(Ok(near))
    });
    Everything { server, sent, _process: None }
}

/// The server over streamable HTTP, behind a proxy that notes the requests.
async fn over_http(script: PathBuf) -> Everything {
    let import = concat!(env!("CARGO_MANIFEST_DIR"), "/wire/peers/mcp/listen.mjs");
    let mut process = command("node");
    process.arg("--import").arg(import).arg(script).arg("streamableHttp").stdout(Stdio::piped());
    let mut process = process.spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let address = timeout(LIMIT, async {
        loop {
            let line = lines.next_line().await.unwrap().expect("the server starts");
            if let Some(address) = line.strip_prefix("listening on http://") {
                break address.to_owned();
            }
        }
    });
    let address = address.await.expect("the server starts in time");
    // The server stops when its lines are not read.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    let (url, sent) = proxy(address).await;
    Everything { server: McpServer::from_url(url), sent, _process: Some(process) }
}

async fn proxy(address: String) -> (String, Sent) {
    let (listener, sent) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), Sent::default());
    let (url, notes) = (format!("http://{}/mcp", listener.local_addr().unwrap()), sent.clone());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(server) = TcpStream::connect(&address).await else { continue };
            let (from_client, mut to_client) = client.into_split();
            let (mut from_server, to_server) = server.into_split();
            tokio::spawn(noted(from_client, to_server, notes.clone()));
            tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
        }
    });
    (url, sent)
}

/// Copies everything, and notes it.
async fn noted(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    notes: Sent,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        notes.note(&buffer[..length]);
        to.write_all(&buffer[..length]).await?;
    }
}
