//! `advisor serve`: a chain as an HTTP service, with a chat page.

mod demo_model;
mod demo_tools;
mod open_files;

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use advisor_chain::tools::ToolCallStreaming;
use advisor_chain::{ChatClient, ChatMemoryAdvisor, ChatOptions, Error, Result, ToolCallAdvisor};
use advisor_server::{AllowedOrigins, ChatServer, Inspector, ServerLimits, Tokens, serve};
use tokio::net::TcpListener;

use self::demo_model::DemoModel;
use self::open_files::within_open_files;
use crate::chat::endpoint::{Endpoint, Provider};
use crate::failure::Failure;
use crate::{asking, call_format, conversations};

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
    /// Lets `user` of OpenAI's clients and `metadata.user_id` of Anthropic's name the conversation, if nothing else does.
    #[arg(long)]
    conversation_by_user: bool,
    /// The MiB of a request, at most. Pictures and files count in base64, also those of a client's history. 32 by default.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u16).range(1..))]
    body_limit: Option<u16>,
    /// Counts requests, turns and tokens, for Prometheus at /metrics.
    #[arg(long)]
    metrics: bool,
    /// A file with the bearer token that reads the counters. With --tokens, --metrics needs it.
    #[arg(long, value_name = "FILE", requires = "metrics")]
    operator_token: Option<PathBuf>,
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
    let server = ChatServer::new(client, memory).with_tokens(tokens.clone()).with_allowed_origins(origins);
    let limits = ServerLimits::default();
    let limits = match arguments.body_limit {
        Some(mib) => limits.with_body_bytes(usize::from(mib) << 20),
        None => limits,
    };
    let server = server.with_limits(within_open_files(limits));
    let server = if arguments.conversation_by_user { server.with_conversation_by_user() } else { server };
    let server = if arguments.ask.is_empty() { server } else { server.with_approvals() };
    if arguments.metrics { with_metrics(arguments, &tokens, server) } else { Ok(server) }
}

fn with_metrics(arguments: &Arguments, tokens: &Tokens, server: ChatServer) -> Result<ChatServer, Failure> {
    let server = server.with_metrics();
    let Some(file) = &arguments.operator_token else {
        if arguments.tokens.is_none() {
            return Ok(server);
        }
        let message = "no token of a tenant reads the counters: add --operator-token, or omit --metrics";
        return Err(Error::configuration(message).into());
    };
    let text = text_of(file)?;
    match text.trim() {
        token if token.is_empty() || token.contains(char::is_whitespace) => {
            let message = format!("{}: the file needs one token and nothing else", file.display());
            Err(Error::configuration(message).into())
        }
        token if tokens.tenant(token).is_some() => {
            let message = format!("{}: the token is also one of a tenant", file.display());
            Err(Error::configuration(message).into())
        }
        token => Ok(server.with_operator_token(token)?),
    }
}

fn client(arguments: &Arguments, memory: ChatMemoryAdvisor) -> Result<ChatClient> {
    let tools = demo_tools::tools();
    let tool_loop = ToolCallAdvisor::builder()
        .streaming(ToolCallStreaming::All)
        .policy(asking::policy(&arguments.ask, &tools)?)
        .build()?;
    let in_text = call_format::in_text()?;
    let builder = match arguments.provider {
        None => ChatClient::builder(DemoModel),
        Some(provider) => {
            let (model, base_url) = (arguments.model.clone(), arguments.base_url.clone());
            let endpoint = Endpoint::find(provider, model, base_url, None)?;
            let options = ChatOptions::new().with_model(endpoint.model);
            let builder = ChatClient::builder(endpoint.server).options(options);
            match in_text {
                Some(in_text) => builder.advisor(in_text),
                None => builder,
            }
        }
    };
    let builder = builder.advisor(tool_loop).advisor(memory).tools(&tools);
    match &arguments.system {
        Some(system) => builder.system(system.as_str()).build(),
        None => builder.build(),
    }
}

/// Reads the file of tokens.
fn tokens(file: &Path) -> Result<Tokens, Failure> {
    let text = text_of(file)?;
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

fn text_of(file: &Path) -> Result<String, Failure> {
    let unreadable = |source| Failure::Unreadable { file: file.display().to_string(), source };
    std::fs::read_to_string(file).map_err(unreadable)
}
