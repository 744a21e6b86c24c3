//! `advisor chat`: talks with a model behind any compatible endpoint.

use advisor_chain::{
    ChatClient, ChatMemoryAdvisor, ChatOptions, Error, ErrorKind, InMemoryStore, OnDrop, OpenAiModel, Result,
    ToolCallAdvisor, ToolCallStreaming, TurnStream,
};
use futures::StreamExt;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::{chat_tools, screen};

pub(crate) async fn run(
    model: Option<String>,
    base_url: Option<String>,
    system: Option<String>,
) -> Result<()> {
    let client = client(model, base_url, system)?;
    println!("Ctrl-C cancels an answer, Ctrl-D ends the chat. Tools: current_time, read_file.");
    let mut editor = Some(DefaultEditor::new().map_err(unreadable)?);
    while let Some(line) = read_line(&mut editor).await? {
        if line.trim().is_empty() {
            continue;
        }
        let turn = client.prompt().user(line).conversation("chat").stream();
        if let Err(error) = answer(turn).await {
            println!("[{}]", screen::chain_of(&error));
        }
    }
    Ok(())
}

fn client(model: Option<String>, base_url: Option<String>, system: Option<String>) -> Result<ChatClient> {
    let openai = match (OpenAiModel::from_env(), base_url) {
        (Ok(openai), None) => openai,
        (Ok(openai), Some(base_url)) => openai.with_base_url(base_url),
        // A server of one's own often serves one model, whatever it is asked for.
        (Err(_), Some(base_url)) => OpenAiModel::new("default").with_base_url(base_url),
        (Err(error), None) => return Err(error),
    };
    let tool_loop = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build()?;
    let mut client = ChatClient::builder(openai)
        .advisor(tool_loop)
        .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
        .tools(&chat_tools::tools());
    if let Some(model) = model {
        client = client.options(ChatOptions::new().with_model(model));
    }
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

/// Shows the answer as it comes. Ctrl-C cancels it; what was shown stays in the conversation.
async fn answer(mut turn: TurnStream) -> Result<()> {
    let handle = turn.handle();
    let mut cancelled = false;
    loop {
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c(), if !cancelled => {
                cancelled = true;
                handle.cancel(OnDrop::Seal);
            }
            item = turn.next() => match item {
                Some(Ok(chunk)) => screen::show(&chunk),
                Some(Err(error)) if error.kind() == ErrorKind::Cancelled => {
                    println!(" [cancelled]");
                    return Ok(());
                }
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            },
        }
    }
}
