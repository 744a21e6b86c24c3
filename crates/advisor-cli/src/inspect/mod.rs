//! `advisor inspect`: shows a journal as a timeline.

mod event;
mod facts;
mod html;
mod mermaid;
mod text;
mod timeline;

use std::io::Write;
use std::path::PathBuf;

use advisor_chain::Error;
use advisor_testkit::Journal;
use clap::ValueEnum;

use self::timeline::Timeline;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The journal, such as one of `advisor chat --journal`.
    file: PathBuf,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The most events to show. A note tells how many are left out.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    events: usize,
}

/// The forms of a timeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line for each event, with a column for each lane.
    #[default]
    Text,
    /// A sequence diagram of Mermaid.
    Mermaid,
    /// A page in one file, without scripts.
    Html,
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let name = arguments.file.display().to_string();
    let json = std::fs::read(&arguments.file)
        .map_err(|source| Failure::Unreadable { file: name.clone(), source })?;
    let journal: Journal = serde_json::from_slice(&json)
        .map_err(|error| Error::configuration(format!("{name} is no journal")).with_source(error))?;
    let timeline = Timeline::new(&journal.events(), arguments.events);
    let shown = match arguments.format {
        Format::Text => text::render(&timeline),
        Format::Mermaid => mermaid::render(&timeline),
        Format::Html => html::render(&timeline),
    };
    out.write_all(shown.as_bytes())?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests;
