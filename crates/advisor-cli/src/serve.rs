//! `advisor serve`: a chain as an HTTP service, with a chat page.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use advisor_chain::tools::ToolSet;
use advisor_chain::{ChatClient, ChatMemoryAdvisor, Error, Result};
use advisor_server::{AllowedOrigins, ChatServer, Inspector, ServerLimits, Tokens, serve};
use tokio::net::TcpListener;

use crate::demo::model::DemoModel;
use crate::endpoint::Provider;
use crate::failure::Failure;
use crate::{conversations, tools};

/// The time for running turns to end by themselves after a signal.
const SHUTDOWN: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The address to listen on. One that other machines can reach needs --tokens.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The provider, whose API the model's server speaks. Without this option a demonstration answers, which needs no
    /// key.
    #[arg(long, value_enum)]
    provider: Option<Provider>,
    /// The model. The default is the variable of the provider, such as OPENAI_MODEL.
    #[arg(long, value_name = "NAME", requires = "provider")]
    model: Option<String>,
    /// The base URL of the model's server. The default is the variable of the provider, such as OPENAI_BASE_URL.
    #[arg(long, value_name = "URL", requires = "provider")]
    base_url: Option<String>,
    /// Instructions for the model.
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// The file of the conversations. It is created if it does not exist.
    #[arg(long, value_name = "FILE", default_value = "advisor.sqlite")]
    memory: PathBuf,
    /// A file with a line for each user: the tenant, a space, and the bearer token. Lines that begin with `#` are
    /// comments.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// The origin of another site whose pages may use the server, such as `https://chat.example.org`. It can be given
    /// several times.
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// A tool that asks before it runs, such as `demo_weather`; `*` at the end matches every rest. Users decide on the
    /// page. It can be given several times.
    #[arg(long, value_name = "TOOL")]
    ask: Vec<String>,
    /// The MiB of a request, at most. Pictures and files count in base64, also those of a client's history. 32 by default.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u16).range(1..))]
    body_limit: Option<u16>,
}

pub(crate) async fn run(arguments: Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let store = conversations::opened(&arguments.memory).await?;
    let inspector = Inspector::new();
    let memory = ChatMemoryAdvisor::new(inspector.store(store.clone()));
    let client = client(&arguments, memory.clone())?;
    let server = server(&arguments, client, memory)?;
    // Other machines do not see how the chain is built.
    let server =
        if arguments.listen.ip().is_loopback() { server.with_inspector(&inspector)? } else { server };
    let listener = TcpListener::bind(arguments.listen).await.map_err(|error| {
        let message = format!("cannot listen on {}: choose another address with --listen", arguments.listen);
        Error::configuration(message).with_source(error)
    })?;
    let address = listener.local_addr().map_err(Error::advisor)?;
    writeln!(out, "http://{address}/ serves {}. Ctrl-C ends it.", arguments.memory.display())?;
    out.flush()?;
    let served = tokio::select! {
        served = serve(listener, server.clone(), ended(), SHUTDOWN) => {
            served.map_err(|error| Error::configuration("the server ended").with_source(error))
        }
        stopped = stopped_at_once(&server) => stopped,
    };
    store.close().await;
    Ok(served?)
}

/// Stops the running turns at a second signal.
async fn stopped_at_once(server: &ChatServer) -> Result<()> {
    ended().await;
    ended().await;
    server.stop(Duration::ZERO).await
}

/// Waits for ctrl-c, or for the signal with which a supervisor ends a service.
async fn ended() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = interrupted => {}
                _ = terminated.recv() => {}
            }
            return;
        }
    }
    let _ = interrupted.await;
}

fn server(
    arguments: &Arguments,
    client: ChatClient,
    memory: ChatMemoryAdvisor,
) -> Result<ChatServer, Failure> {
    let tokens = arguments.tokens.as_deref().map(tokens).transpose()?.unwrap_or_default();
    let origins = AllowedOrigins::new(arguments.allow_origin.iter().map(String::as_str))?;
    let server = ChatServer::new(client, memory).with_tokens(tokens).with_allowed_origins(origins);
    let mut limits = ServerLimits::default();
    if let Some(mib) = arguments.body_limit {
        limits.body_bytes = usize::from(mib) << 20;
    }
    let server = server.with_limits(within_open_files(limits));
    Ok(if arguments.ask.is_empty() { server } else { server.with_approvals() })
}

fn client(arguments: &Arguments, memory: ChatMemoryAdvisor) -> Result<ChatClient> {
    let tools = ToolSet::new().with(tools::current_time()).with(tools::demo_weather());
    let calls_in_text = tools::calls_in_text()?;
    let builder = match arguments.provider {
        None => ChatClient::builder(DemoModel),
        Some(provider) => {
            let model = provider.model(arguments.model.clone(), arguments.base_url.clone())?;
            match calls_in_text {
                Some(calls_in_text) => ChatClient::builder(model).advisor(calls_in_text),
                None => ChatClient::builder(model),
            }
        }
    };
    let builder = builder.advisor(tools::tool_loop(&arguments.ask, &tools)?).advisor(memory).tools(&tools);
    match &arguments.system {
        Some(system) => builder.system(system.as_str()).build(),
        None => builder.build(),
    }
}

/// Returns limits whose connections and turns leave files for one another, for memory and for tools. Each turn has a
/// connection to the model, also after its client has gone.
fn within_open_files(mut limits: ServerLimits) -> ServerLimits {
    if let Some(files) = raised() {
        limits.open_connections = limits.open_connections.min(files / 4 * 3).max(1);
        limits.running_turns = limits.running_turns.min(files / 8).max(1);
    }
    limits
}

/// Raises the number of files that the process may open, and returns it if it is known.
#[cfg(unix)]
fn raised() -> Option<usize> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    // macOS may refuse the first.
    let mut higher = [65_536, 10_240].into_iter().map(|files| hard.min(files)).filter(|files| *files > soft);
    let raised = higher.find(|files| setrlimit(Resource::RLIMIT_NOFILE, *files, hard).is_ok());
    Some(usize::try_from(raised.unwrap_or(soft)).unwrap_or(usize::MAX))
}

#[cfg(not(unix))]
fn raised() -> Option<usize> {
    None
}

/// Reads the file of tokens.
fn tokens(file: &Path) -> Result<Tokens, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|source| Failure::Unreadable { file: file.display().to_string(), source })?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pair = |line| match str::split_whitespace(line).collect::<Vec<_>>()[..] {
        [tenant, token] => Some((token, tenant)),
        _ => None,
    };
    let pairs: Option<Vec<_>> = lines.map(pair).collect();
    match pairs {
        Some(pairs) if !pairs.is_empty() => Ok(Tokens::new(pairs)?),
        _ => {
            let message = format!(
                "{}: each line needs a tenant, a space and a token without white space",
                file.display()
            );
            Err(Error::configuration(message).into())
        }
    }
}
