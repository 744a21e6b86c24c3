//! Compares the chain with other libraries: the same answers from the same server, in the same run.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml` builds the clients, starts the server and
//! prints the results as Markdown. `-- text tools` runs single parts, and `-- --quick` a short trial. See
//! README.md.

mod bench;
mod cargo;
mod clients;
mod figures;
mod goals;
mod interpreters;
mod machine;
mod parts;
mod rounds;
mod server;
mod server_process;
mod size;
mod table;
mod valgrind;

use clap::{Parser, Subcommand};

use bench::Bench;
use parts::Part;

/// Measures the chain beside its peers and prints the result as Markdown.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    /// What is measured; everything if left out.
    parts: Vec<Part>,
    /// Fewer rounds of shorter streams: to see that it works, not to compare.
    #[arg(long)]
    quick: bool,
    /// Also OpenAI's libraries for Python and Node, which are installed into the target directory.
    #[arg(long)]
    interpreters: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// The server alone, until standard input ends.
    Server,
}

fn main() {
    let arguments = Arguments::parse();
    if let Some(Command::Server) = arguments.command {
        server::run().expect("the server runs");
        return;
    }
    let mut parts = if arguments.parts.is_empty() { Part::ALL.to_vec() } else { arguments.parts };
    parts.extend(arguments.interpreters.then_some(Part::Interpreters));
    let mut bench = Bench::start(arguments.quick);
    print!("{}", bench.conditions());
    for part in parts {
        eprintln!("--- {part:?}");
        part.run(&mut bench);
    }
    println!("{}\nLoad of the machine at the end: {}.", bench.goals, machine::load());
}
