//! The `advisor` binary: a demo, a chat with stored conversations, a server, and an aggregator of recorded streams.

mod aggregate;
mod chat;
mod conversations;
mod demo;
mod endpoint;
mod failure;
mod printable;
mod screen;
mod serve;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use advisor_chain::Error;
use aggregate::Api;
use clap::{Parser, Subcommand};
use failure::{EXIT_CODES, Failure};
use tokio::runtime::Builder;

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
    Demo,
    /// Chats with a model of any provider. Ctrl-C cancels the turn, Ctrl-D ends the chat.
    #[command(after_help = format!("{}\n\n{EXIT_CODES}", chat::after_help()))]
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
    printable::log_warnings();
    let mut out = std::io::stdout();
    let outcome = match Arguments::parse().command {
        Command::Demo => on_one_thread(demo::run()),
        Command::Chat(arguments) => on_one_thread(chat::run(arguments)),
        Command::Serve(arguments) => run_on(Builder::new_multi_thread(), serve::run(arguments, &mut out)),
        Command::Conversations(arguments) => on_one_thread(conversations::list(arguments, &mut out)),
        Command::Export(arguments) => on_one_thread(conversations::write_out(arguments, &mut out)),
        Command::Import(arguments) => on_one_thread(conversations::read_in(arguments, &mut out)),
        Command::Aggregate { api, file } => aggregate::run(api, &file, &mut out),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

/// Runs work on one thread, which drives one turn at a time. Files and terminals are read on other threads.
fn on_one_thread(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    run_on(Builder::new_current_thread(), work)
}

fn run_on(mut threads: Builder, work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = threads.enable_all().build();
    let runtime =
        runtime.map_err(|error| Error::configuration("no runtime can be made").with_source(error))?;
    let outcome = runtime.block_on(work);
    // A tool that blocks its thread must not keep the program from ending.
    runtime.shutdown_background();
    outcome
}
