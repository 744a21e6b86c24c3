//! `advisor chat`: chats with a model of any provider.

mod commands;
mod input;
mod json;
mod session;
mod talk;
mod turn;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use advisor_chain::memory::ConversationStore;
use advisor_chain::tools::ToolSet;
use advisor_chain::{ChatClient, ChatMemoryAdvisor, ConversationKey, InMemoryStore, Result};

use self::session::Session;
use self::talk::Talk;
use crate::endpoint::Provider;
use crate::failure::Failure;
use crate::screen::Screen;
use crate::{conversations, tools};

/// The text of `--help` about input and output.
const STREAMS: &str = "\
The answer goes to standard output; reasoning, tool runs, notes and errors go to standard error.
Where standard input is a file or a pipe, each line is a turn, and a failed turn ends the program.
Colours are shown on terminals only, and not with NO_COLOR or TERM=dumb.
With --json, standard output has one JSON value a line, as docs/json.md of the project describes. Errors of turns are
among them, and everything else goes to standard error.
The key is read from the variable of the provider (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or
OLLAMA_API_KEY) and sent to the server that is named; a server of your own may need none.
ADVISOR_TOOL_CALL_FORMAT chooses how the model calls tools: xml, json, sentinel, deepseek or kimi in its text, or
api_tool_call (the default) by the interface of the provider.";

/// Returns the text of `--help` after the options.
pub(crate) fn after_help() -> String {
    format!("{STREAMS}\n\nCommands on a terminal:\n{}", commands::help())
}

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The provider, whose API the server speaks.
    #[arg(long, value_enum, default_value_t = Provider::Openai)]
    provider: Provider,
    /// The model. The default is the variable of the provider, such as OPENAI_MODEL.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The server's base URL, such as http://localhost:11434/v1. The default is the variable of the provider, such
    /// as OPENAI_BASE_URL, or else the provider's own server.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Instructions for the model.
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Gives the model no tools. Otherwise it can ask for the time.
    #[arg(long)]
    no_tools: bool,
    /// A tool that asks before it runs, such as `current_time`; `*` at the end matches every rest. Can be repeated. The chat
    /// asks on a terminal; elsewhere a waiting call ends the program.
    #[arg(long, value_name = "TOOL", conflicts_with_all = ["json", "no_tools"])]
    ask: Vec<String>,
    /// A file to store conversations in, so that they can be continued later. Without this option they are lost
    /// when the program ends.
    #[arg(long, value_name = "FILE")]
    memory: Option<PathBuf>,
    /// The conversation to continue.
    #[arg(long, value_name = "ID", default_value = "chat")]
    conversation: String,
    /// Writes JSON Lines to standard output in place of text. Each turn has its begin, its chunks, and the completion
    /// or the error that ends it.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn tools(&self) -> ToolSet {
        match self.no_tools {
            true => ToolSet::new(),
            false => ToolSet::new().with(tools::current_time()),
        }
    }
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let model = arguments.provider.model(arguments.model.clone(), arguments.base_url.clone())?;
    let calls_in_text = tools::calls_in_text()?;
    let tools = arguments.tools();
    let conversation = ConversationKey::new(&arguments.conversation)?;
    let file = match &arguments.memory {
        Some(file) => Some(conversations::opened(file).await?),
        None => None,
    };
    let store: Arc<dyn ConversationStore> = match file.clone() {
        Some(file) => Arc::new(file),
        None => Arc::new(InMemoryStore::new()),
    };
    let memory = ChatMemoryAdvisor::new(Arc::clone(&store));
    let builder = ChatClient::builder(model)
        .advisor(tools::tool_loop(&arguments.ask, &tools)?)
        .advisor(memory.clone())
        .tools(&tools);
    let builder = match arguments.system {
        Some(system) => builder.system(system),
        None => builder,
    };
    let builder = match calls_in_text {
        Some(calls_in_text) => builder.advisor(calls_in_text),
        None => builder,
    };
    let session = Session { client: builder.build()?, memory: memory.clone(), store, conversation };
    let outcome = match arguments.json {
        true => json::talk(&session, &mut io::stdout()).await,
        false => Talk::new(session, Screen::standard())?.run().await,
    };
    // Writes the shown part of a cancelled answer before the file is closed.
    let closed = memory.close_unfinished().await;
    if let Some(file) = file {
        file.close().await;
    }
    outcome.and(closed.map_err(Failure::from))
}
