//! The `advisor` binary: a demo, a chat with stored conversations, a server, and an aggregator of recorded streams.

mod aggregate;
mod asking;
mod call_format;
mod chat;
mod conversations;
mod demo;
mod failure;
mod inspect;
mod journal_file;
mod look;
mod markdown;
mod output;
mod printable;
mod private_file;
mod screen;
mod serve;

use std::path::PathBuf;
use std::process::ExitCode;

use advisor_chain::Error;
use aggregate::Api;
use clap::{Parser, Subcommand};
use failure::{EXIT_CODES, Failure};

/// A streaming advisor chain for language-model calls, at the command line.
#[derive(Debug, Parser)]
#[command(name = "advisor", version, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows a conversation of two turns with parallel tools, memory and live streaming; needs no key and no
    /// network.
    Demo(demo::Arguments),
    /// Chats with a model of any provider. Ctrl-C cancels the turn, Ctrl-D ends the chat.
    #[command(after_help = format!("{}\n\n{EXIT_CODES}", chat::STREAMS))]
    Chat(chat::Arguments),
    /// Serves a chat page, and clients of the AI SDK, AG-UI, OpenAI and Anthropic.
    #[command(after_help = EXIT_CODES)]
    Serve(serve::Arguments),
    /// Lists the conversations in a file.
    Conversations(conversations::ListArguments),
    /// Prints a conversation of a file as JSON Lines, for backup or for import elsewhere.
    Export(conversations::ExportArguments),
    /// Imports an exported conversation from standard input into a file. Importing it again changes nothing.
    Import(conversations::ImportArguments),
    /// Shows a journal as a timeline, with a lane for each advisor, the model, the store and the tools.
    #[command(after_help = EXIT_CODES)]
    Inspect(inspect::Arguments),
    /// Prints the result of a recorded stream as one JSON object.
    #[command(after_help = EXIT_CODES)]
    Aggregate {
        /// The wire format of the recording.
        #[arg(long, value_enum)]
        api: Api,
        /// The recording: a body as it was sent, or one payload per line in a file named `.jsonl`.
        file: PathBuf,
    },
}

fn main() -> ExitCode {
    let mut out = std::io::stdout();
    let outcome = match Arguments::parse().command {
        Command::Demo(arguments) => with_runtime(demo::run(arguments)),
        Command::Chat(arguments) => with_runtime(chat::run(arguments)),
        Command::Serve(arguments) => on_all_threads(serve::run(arguments, &mut out)),
        Command::Conversations(arguments) => with_runtime(conversations::list(arguments, &mut out)),
        Command::Export(arguments) => with_runtime(conversations::write_out(arguments, &mut out)),
        Command::Import(arguments) => with_runtime(conversations::read_in(arguments, &mut out)),
        Command::Inspect(arguments) => inspect::run(&arguments, &mut out),
        Command::Aggregate { api, file } => aggregate::run(api, &file, &mut out),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

fn on_all_threads(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Error::configuration("no runtime can be made").with_source(error))?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    outcome
}

fn with_runtime(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    // One thread drives one turn at a time. Files and terminals are read on other threads.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Error::configuration("no runtime can be made").with_source(error))?;
    let outcome = runtime.block_on(work);
    // A tool that blocks its thread must not keep the program from ending.
    runtime.shutdown_background();
    outcome
}
