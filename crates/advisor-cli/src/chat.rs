//! `advisor chat`: talks with a model behind any compatible endpoint.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;

use advisor_chain::{
    ChatClient, ChatMemoryAdvisor, ChatOptions, ConversationKey, Error, ErrorKind, InMemoryStore, OnDrop,
    OpenAiModel, Result, ToolCallAdvisor, ToolCallStreaming, TurnStream,
};
use chat_memory_sqlite::{OpenError, SqliteStore};
use futures::{FutureExt, StreamExt};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::failure::Failure;
use crate::{chat_tools, screen};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The model. Also from OPENAI_MODEL.
    #[arg(long)]
    model: Option<String>,
    /// The endpoint's base URL, such as http://localhost:11434/v1. Also from OPENAI_BASE_URL; the key from OPENAI_API_KEY.
    #[arg(long)]
    base_url: Option<String>,
    /// Instructions for the model.
    #[arg(long)]
    system: Option<String>,
    /// A file to remember conversations in, so that they can be gone on with later. Left out, the chat ends with the program.
    #[arg(long, value_name = "FILE")]
    memory: Option<PathBuf>,
    /// The conversation to go on with.
    #[arg(long, value_name = "ID", default_value = "chat")]
    conversation: String,
}

pub(crate) async fn run(arguments: Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let model = named(arguments.model, std::env::var("OPENAI_MODEL").ok())?;
    let conversation = ConversationKey::new(&arguments.conversation)?;
    let store = match &arguments.memory {
        Some(file) => Some(SqliteStore::open(file).await.map_err(|error| unusable(file, error))?),
        None => None,
    };
    let memory = match store.clone() {
        Some(store) => ChatMemoryAdvisor::new(store),
        None => ChatMemoryAdvisor::new(InMemoryStore::new()),
    };
    let client = client(&model, arguments.base_url, arguments.system, memory.clone())?;
    let outcome = talk(&client, &conversation, out).await;
    // What a cancelled answer had shown is written before the file is closed.
    let closed = memory.close_unfinished().await;
    if let Some(store) = store {
        store.close().await;
    }
    outcome.and(closed.map_err(Failure::from))
}

async fn talk(
    client: &ChatClient,
    conversation: &ConversationKey,
    out: &mut impl Write,
) -> Result<(), Failure> {
    writeln!(out, "Ctrl-C cancels an answer, Ctrl-D ends the chat. Tools: current_time, read_file.")?;
    let mut editor = Some(DefaultEditor::new().map_err(unreadable)?);
    while let Some(line) = read_line(&mut editor).await? {
        if line.trim().is_empty() {
            continue;
        }
        let turn = client.prompt().user(line).conversation(conversation.clone()).stream();
        match answer(turn, tokio::signal::ctrl_c(), out).await {
            // A turn that failed does not end the chat.
            Err(Failure::Chain(error)) => writeln!(out, "[{}]", screen::chain_of(&error))?,
            other => other?,
        }
    }
    Ok(())
}

/// The model that the chat asks: the one of the command line, else that of the environment.
fn named(given: Option<String>, environment: Option<String>) -> Result<String> {
    let mut names = [given, environment].into_iter().flatten().map(|name| name.trim().to_owned());
    names
        .find(|name| !name.is_empty())
        .ok_or_else(|| Error::configuration("no model is named; give --model or set OPENAI_MODEL"))
}

pub(crate) fn unusable(file: &Path, error: OpenError) -> Error {
    Error::configuration(format!("{}: the conversations in it cannot be used", file.display()))
        .with_source(error)
}

fn client(
    model: &str,
    base_url: Option<String>,
    system: Option<String>,
    memory: ChatMemoryAdvisor,
) -> Result<ChatClient> {
    let openai = match (OpenAiModel::from_env(), base_url) {
        (Ok(openai), None) => openai,
        (Ok(openai), Some(base_url)) => openai.with_base_url(base_url),
        // Neither a key nor a server in the environment: this server needs no key.
        (Err(_), Some(base_url)) => OpenAiModel::new(model).with_base_url(base_url),
        (Err(error), None) => return Err(error),
    };
    let tool_loop = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build()?;
    let mut client = ChatClient::builder(openai)
        .advisor(tool_loop)
        .advisor(memory)
        .tools(&chat_tools::tools())
        .options(ChatOptions::new().with_model(model));
    if let Some(system) = system {
        client = client.system(system);
    }
    client.build()
}

/// Reads one line off the async threads; `None` at the end of the input.
async fn read_line(editor: &mut Option<DefaultEditor>) -> Result<Option<String>> {
    let Some(mut taken) = editor.take() else { return Ok(None) };
    let reading = tokio::task::spawn_blocking(move || {
        let line = taken.readline("> ");
        if let Ok(line) = &line {
            // A history that cannot be kept is no reason to stop talking.
            let _ = taken.add_history_entry(line.as_str());
        }
        (taken, line)
    });
    let (given_back, line) = reading.await.map_err(Error::advisor)?;
    *editor = Some(given_back);
    match line {
        Ok(line) => Ok(Some(line)),
        Err(ReadlineError::Interrupted) => Ok(Some(String::new())),
        Err(ReadlineError::Eof) => Ok(None),
        Err(error) => Err(unreadable(error)),
    }
}

fn unreadable(error: ReadlineError) -> Error {
    Error::configuration("the terminal cannot be read").with_source(error)
}

/// Shows the answer as it comes. An interrupt cancels it; what was shown stays in the conversation.
async fn answer(
    mut turn: TurnStream,
    interrupt: impl Future<Output = io::Result<()>>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let handle = turn.handle();
    // One for the whole answer, asked before each chunk: a signal is heard also while there is always another chunk.
    let mut interrupt = pin!(interrupt.fuse());
    loop {
        tokio::select! {
            biased;
            Ok(()) = &mut interrupt => handle.cancel(OnDrop::Seal),
            item = turn.next() => match item {
                Some(Ok(chunk)) => screen::show(&chunk, out)?,
                Some(Err(error)) if error.kind() == ErrorKind::Cancelled => {
                    writeln!(out, " [cancelled]")?;
                    return Ok(());
                }
                Some(Err(error)) => return Err(Failure::Chain(error)),
                None => return Ok(()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::Poll;

    use advisor_testkit::{Answer, ScriptedModel};
    use futures::future::poll_fn;

    use super::*;

    /// A turn in which there is always another chunk.
    fn flood() -> TurnStream {
        let answer = (0..1000).fold(Answer::new(), |answer, _| answer.text("x")).done();
        let client = ChatClient::builder(ScriptedModel::new([answer])).build().unwrap();
        client.prompt().user("go").stream()
    }

    async fn shown(interrupt: impl Future<Output = io::Result<()>>) -> String {
        let mut out = Vec::new();
        answer(flood(), interrupt, &mut out).await.unwrap();
        String::from_utf8(out).unwrap()
    }

    #[tokio::test]
    async fn an_interrupt_is_heard_while_there_is_always_another_chunk() {
        let mut asked = 0;
        let interrupt = poll_fn(|_| {
            asked += 1;
            if asked > 5 { Poll::Ready(Ok(())) } else { Poll::Pending }
        });
        let shown = shown(interrupt).await;
        assert!(shown.ends_with(" [cancelled]\n") && shown.len() < 100, "{shown}");
    }

    #[tokio::test]
    async fn an_answer_is_whole_without_an_interrupt_or_without_signals() {
        let whole = format!("{}\n", "x".repeat(1000));
        assert_eq!(shown(pending()).await, whole);
        assert_eq!(shown(ready(Err(io::Error::other("no signals")))).await, whole);
    }

    #[test]
    fn the_command_line_names_the_model_before_the_environment_does() {
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(named(some("a"), some("b")).unwrap(), "a");
        assert_eq!(named(None, some(" b\n")).unwrap(), "b");
        assert_eq!(named(some(""), some("b")).unwrap(), "b");
        let error = named(None, some(" ")).unwrap_err().to_string();
        assert!(error.contains("--model") && error.contains("OPENAI_MODEL"), "{error}");
    }
}
