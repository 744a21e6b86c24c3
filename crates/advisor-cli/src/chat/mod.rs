//! `advisor chat`: chats with a model of any provider.

mod answer;
mod commands;
pub(crate) mod endpoint;
mod folder;
mod input;
mod interrupts;
mod json;
mod session;
mod talk;
mod tools;
pub(crate) mod waits;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use advisor_chain::memory::ConversationStore;
use advisor_chain::tools::{ToolCallStreaming, ToolSet};
use advisor_chain::{
    ChatClient, ChatClientBuilder, ChatMemoryAdvisor, ChatOptions, ConversationKey, InMemoryStore, Result,
    ToolCallAdvisor,
};
use advisor_testkit::{JournalAdvisor, JournalModel, JournalStore};

use self::endpoint::{Endpoint, Provider};
use self::folder::SharedFolder;
use self::session::{Session, Spent};
use self::talk::Talk;
use crate::failure::Failure;
use crate::journal_file::JournalFile;
use crate::output::ColorOption;
use crate::screen::Screen;
use crate::{asking, call_format, conversations};

/// The text of `--help` after the options.
pub(crate) const STREAMS: &str = "\
The answer goes to standard output; reasoning, tool runs, notes and errors go to standard error.
Where standard input is a file or a pipe, each line is a turn, and a failed turn ends the program.
On a terminal, answers are rendered as Markdown, and lines that begin with a slash are commands; /help lists them.
Colours are shown on terminals only, and not with NO_COLOR, CLICOLOR=0 or TERM=dumb; --color and CLICOLOR_FORCE
override this. Without colours, Markdown is shown as it was written.
With --json, standard output has one JSON value a line, as docs/json.md of the project describes. Errors of turns are
among them, and everything else goes to standard error.
The key is read from the variable of the provider (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or
OLLAMA_API_KEY) and sent to the server that is named; a server of your own may need none.
ADVISOR_TOOL_CALL_FORMAT chooses how the model calls tools: xml, json or sentinel in its text, or api_tool_call (the
default) by the interface of the provider.";

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
    /// A tool that asks before it runs, such as `read_file`; `*` at the end matches every rest. Can be repeated. The chat
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
    /// A new file for the journal of the chat, which `advisor inspect` shows. It records the order and the times of
    /// the work of each part. It contains the arguments of tools, but no texts of answers.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Writes JSON Lines to standard output in place of text. Each turn has its begin, its chunks, and the completion
    /// or the error that ends it.
    #[arg(long)]
    json: bool,
    /// Whether to show colours. With colours, answers are rendered as Markdown.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    color: ColorOption,
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
    let (notes, mut waits) = waits::waits();
    let (model, base_url) = (arguments.model.clone(), arguments.base_url.clone());
    let endpoint = Endpoint::find(arguments.provider, model, base_url, Some(notes))?;
    let in_text = call_format::in_text()?;
    let tools = arguments.tools()?;
    let conversation = ConversationKey::new(&arguments.conversation)?;
    let file = match &arguments.memory {
        Some(file) => Some(conversations::opened(file).await?),
        None => None,
    };
    let store: Arc<dyn ConversationStore> = match file.clone() {
        Some(file) => Arc::new(file),
        None => Arc::new(InMemoryStore::new()),
    };
    let journal = arguments.journal.as_deref().map(JournalFile::create).transpose()?;
    let memory = match &journal {
        Some(file) => ChatMemoryAdvisor::new(JournalStore::new(Arc::clone(&store), file.journal())),
        None => ChatMemoryAdvisor::new(Arc::clone(&store)),
    };
    let model = endpoint.model.clone();
    let tool_loop = tool_loop(&arguments.ask, &tools)?;
    let builder = client(endpoint, tool_loop, memory.clone(), journal.as_ref());
    let builder = match arguments.system {
        Some(system) => builder.system(system),
        None => builder,
    };
    let builder = match in_text {
        Some(in_text) => builder.advisor(in_text),
        None => builder,
    };
    let client = builder.tools(&tools).build()?;
    let outcome = if arguments.json {
        json::talk(&client, &conversation, &mut waits, journal.as_ref(), &mut io::stdout()).await
    } else {
        let spent = Spent::default();
        let session = Session { client, memory: memory.clone(), store, conversation, model, spent, journal };
        Talk::new(session, Screen::standard(arguments.color), waits)?.run().await
    };
    // Writes the shown part of a cancelled answer before the file is closed.
    let closed = memory.close_unfinished().await;
    if let Some(file) = file {
        file.close().await;
    }
    outcome.and(closed.map_err(Failure::from))
}

fn tool_loop(asks: &[String], tools: &ToolSet) -> Result<ToolCallAdvisor> {
    let policy = asking::policy(asks, tools)?;
    ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).policy(policy).build()
}

/// Returns a chain without tools. With a journal, it records the order of its work.
fn client(
    endpoint: Endpoint,
    tool_loop: ToolCallAdvisor,
    memory: ChatMemoryAdvisor,
    journal: Option<&JournalFile>,
) -> ChatClientBuilder {
    let client = match journal.map(JournalFile::journal) {
        Some(journal) => ChatClient::builder(JournalModel::new(endpoint.server, journal))
            .advisor(JournalAdvisor::new(tool_loop, journal))
            .advisor(JournalAdvisor::new(memory, journal)),
        None => ChatClient::builder(endpoint.server).advisor(tool_loop).advisor(memory),
    };
    client.options(ChatOptions::new().with_model(endpoint.model))
}
