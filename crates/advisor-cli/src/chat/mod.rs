//! `advisor chat`: chats with a model of any provider.

mod answer;
pub(crate) mod endpoint;
mod folder;
mod input;
mod interrupts;
mod tools;

use std::io::Write;
use std::path::PathBuf;

use advisor_chain::tools::{ToolCallStreaming, ToolSet};
use advisor_chain::{
    ChatClient, ChatMemoryAdvisor, ChatOptions, ConversationKey, InMemoryStore, Result, ToolCallAdvisor,
};

use self::endpoint::{Endpoint, Provider};
use self::folder::SharedFolder;
use self::input::Input;
use self::interrupts::Interrupts;
use crate::conversations;
use crate::failure::Failure;
use crate::screen::{self, Screen};

/// The text of `--help` after the options.
pub(crate) const STREAMS: &str = "\
The answer goes to standard output; reasoning, tool runs, notes and errors go to standard error.
Where standard input is a file or a pipe, each line is a turn, and a failed turn ends the program.
Colours are shown on terminals only, and not with NO_COLOR or TERM=dumb.
The key is read from the variable of the provider (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or
OLLAMA_API_KEY) and sent to the server that is named; a server of your own may need none.";

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
    /// A folder whose text files the model may read, and so send to the server. Only files of at most 256 KiB
    /// inside it can be read, and none whose path has a name that begins with a dot. Without this option the
    /// model can read no file.
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// Gives the model no tools. Otherwise it can ask for the time, and read files if `--files` is given.
    #[arg(long, conflicts_with = "files")]
    no_tools: bool,
    /// A file to store conversations in, so that they can be continued later. Without this option they are lost
    /// when the program ends.
    #[arg(long, value_name = "FILE")]
    memory: Option<PathBuf>,
    /// The conversation to continue.
    #[arg(long, value_name = "ID", default_value = "chat")]
    conversation: String,
}

impl Arguments {
    fn tools(&self) -> Result<ToolSet> {
        if self.no_tools {
            return Ok(ToolSet::new());
        }
        let files = self.files.as_deref().map(SharedFolder::open).transpose()?;
        Ok(tools::tools(files))
    }
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let endpoint = Endpoint::find(arguments.provider, arguments.model.clone(), arguments.base_url.clone())?;
    let tools = arguments.tools()?;
    let conversation = ConversationKey::new(&arguments.conversation)?;
    let store = match &arguments.memory {
        Some(file) => Some(conversations::opened(file).await?),
        None => None,
    };
    let memory = match store.clone() {
        Some(store) => ChatMemoryAdvisor::new(store),
        None => ChatMemoryAdvisor::new(InMemoryStore::new()),
    };
    let client = client(endpoint, arguments.system, &tools, memory.clone())?;
    let outcome = talk(&client, &conversation, &mut Screen::standard()).await;
    // Writes the shown part of a cancelled answer before the file is closed.
    let closed = memory.close_unfinished().await;
    if let Some(store) = store {
        store.close().await;
    }
    outcome.and(closed.map_err(Failure::from))
}

async fn talk<A: Write, N: Write>(
    client: &ChatClient,
    conversation: &ConversationKey,
    screen: &mut Screen<A, N>,
) -> Result<(), Failure> {
    let mut input = Input::standard()?;
    let mut interrupts = Interrupts::new();
    if input.is_interactive() {
        screen.note(&greeting(client))?;
    }
    while let Some(line) = input.next(&mut interrupts).await? {
        if line.trim().is_empty() {
            continue;
        }
        if input.is_interactive() {
            // A new message from the user discards earlier interrupts.
            interrupts.forget();
        }
        let line = line.trim_end_matches(['\r', '\n']);
        let turn = client.prompt().user(line).conversation(conversation.clone()).stream();
        match answer::show(turn, interrupts.next(), screen).await {
            // A user at a terminal can ask again; a script cannot.
            Err(Failure::Chain(error)) if input.is_interactive() => {
                screen.note(&format!("error: {}", screen::chain_of(&error)))?;
            }
            Err(Failure::Interrupted) if input.is_interactive() => {}
            other => other?,
        }
    }
    Ok(())
}

fn greeting(client: &ChatClient) -> String {
    let names: Vec<&str> = client.tools().definitions().map(|tool| tool.name.as_str()).collect();
    let tools = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!("Ctrl-C cancels an answer, Ctrl-D ends the chat. Tools: {tools}.")
}

fn client(
    endpoint: Endpoint,
    system: Option<String>,
    tools: &ToolSet,
    memory: ChatMemoryAdvisor,
) -> Result<ChatClient> {
    let tool_loop = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build()?;
    let client = ChatClient::builder(endpoint.server)
        .advisor(tool_loop)
        .advisor(memory)
        .tools(tools)
        .options(ChatOptions::new().with_model(endpoint.model));
    match system {
        Some(system) => client.system(system).build(),
        None => client.build(),
    }
}
