//! `advisor demo`: a conversation of two turns over real HTTP, against a server in this process.

mod answers;
mod journalling;

use std::io::{self, Write};
use std::path::PathBuf;

use advisor_chain::tools::ToolCallStreaming;
use advisor_chain::{
    ChatClient, ChatMemoryAdvisor, Chunk, ConversationKey, Error, InMemoryStore, Message, OpenAiModel, Phase,
    Role, ToolCallAdvisor,
};
use advisor_testkit::{Journal, JournalAdvisor, JournalModel, JournalStore, ReplayServer};
use futures::StreamExt;

use crate::failure::Failure;
use crate::journal_file::JournalFile;
use crate::output::{ColorOption, Output};
use crate::printable::printable;
use crate::screen::Screen;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A new file for the journal of the demo, which `advisor inspect` shows.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let file = arguments.journal.as_deref().map(JournalFile::create).transpose()?.unwrap_or_default();
    // Everything goes to standard output, since notes and tools are the point of the demo.
    let out = || Output::standard(io::stdout(), ColorOption::Auto);
    let mut screen = Screen::new(out(), out()).with_columns_of_terminal();
    let server = ReplayServer::start(answers::replies()).await.map_err(Error::advisor)?;
    let journal = Journal::new();
    let store = JournalStore::new(JournalStore::new(InMemoryStore::new(), &journal), file.journal());
    let memory = ChatMemoryAdvisor::new(store);
    let model = OpenAiModel::new("demo-model").with_base_url(format!("{}/v1", server.url()));
    let tool_loop = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build()?;
    let client = ChatClient::builder(JournalModel::new(model, file.journal()))
        .system("You are a travel assistant.")
        .advisor(JournalAdvisor::new(tool_loop, file.journal()))
        .advisor(JournalAdvisor::new(memory.clone(), file.journal()))
        .advisor_in(Phase::ModelCall, journalling::asking(&journal))
        .tools(&journalling::tools(&journal))
        .build()?;

    screen
        .line(format_args!("A server on {} plays the model; everything else is real.\n", server.address()))?;
    screen.line(format_args!("The chain:\n{}", client.explain()))?;
    for question in [
        "How is the weather in Tokyo and in London, and how late is it in Tokyo?",
        "And in Paris? Where should I go?",
    ] {
        turn(&client, question, &journal, &file, &mut screen).await?;
    }
    file.save()?;

    screen.line("── what memory holds ──")?;
    for message in memory.transcript(&ConversationKey::new("demo")?).await?.iter() {
        screen.line(line(message))?;
    }
    screen.line(format_args!("\n── what happened in which order ──\n{journal}"))?;
    let counts = server.counts();
    screen.line(format_args!("{} requests over {} connection(s)", counts.requests, counts.connections))?;
    Ok(())
}

async fn turn<A: Write, N: Write>(
    client: &ChatClient,
    question: &str,
    journal: &Journal,
    file: &JournalFile,
    screen: &mut Screen<A, N>,
) -> Result<(), Failure> {
    screen.line(format_args!("> {question}"))?;
    journal.record(format!("turn: {question}"));
    let mut turn = client.prompt().user(question).conversation("demo").stream();
    file.begin(turn.turn().id());
    while let Some(item) = turn.next().await {
        file.item(&item);
        let chunk = item?;
        screen.show(&chunk)?;
        match &chunk {
            Chunk::RoundCompleted(response) => {
                journal.record(format!("reader sees the end of round {}", response.round()));
            }
            Chunk::Completed(response) => {
                journal.record("reader sees the end of the turn");
                let usage = response.usage().copied().unwrap_or_default();
                let (input, output) = (usage.input_tokens.unwrap_or(0), usage.output_tokens.unwrap_or(0));
                screen.line(format_args!(
                    "[{:?}; {input} tokens in, {output} out]\n",
                    response.finish().reason
                ))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Formats a message for the list of the memory's content.
fn line(message: &Message) -> String {
    let text = printable(&message.text());
    match message.role() {
        Role::Assistant => {
            let calls: Vec<_> = message
                .tool_calls()
                .map(|call| format!("{}({}) as {}", call.name, call.arguments, call.id))
                .collect();
            format!(
                "assistant  {text}{}",
                calls.iter().map(|call| format!("\n             calls {call}")).collect::<String>()
            )
        }
        Role::Tool => {
            let call = message.tool_result().map_or("", |result| &result.call_id);
            format!("tool       {text}  (for {call})")
        }
        Role::User => format!("user       {text}"),
        Role::System => format!("system     {text}"),
    }
}
