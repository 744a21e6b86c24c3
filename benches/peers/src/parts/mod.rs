//! The parts of the measurement. Each prints its tables and notes which goals it reached.

mod counts;
mod curve;
mod interpreters;
mod paced;
mod shapes;
mod stalled;
mod start;
mod text;
mod tools;

use clap::ValueEnum;

use crate::bench::Bench;

/// A part of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// A stream of text: time, instructions, allocations, memory, by the size of what arrives at once.
    Text,
    /// Streams of other shapes: reasoning, arguments, usage on each chunk, obfuscation.
    Shapes,
    /// Turns of many rounds of tool calls.
    Tools,
    /// Many slow streams at once.
    Paced,
    /// A reader that stops reading.
    Stalled,
    /// A fresh process up to its first token.
    Start,
    /// The parts of ours, without a network: what is counted where nobody waits.
    Counts,
    /// Libraries for Python and Node, beside ours.
    #[value(skip)]
    Interpreters,
}

impl Part {
    /// The parts that need only Rust.
    pub(crate) const ALL: [Self; 7] =
        [Self::Text, Self::Shapes, Self::Tools, Self::Paced, Self::Stalled, Self::Start, Self::Counts];

    pub(crate) fn run(self, bench: &mut Bench) {
        match self {
            Self::Text => text::run(bench),
            Self::Shapes => shapes::run(bench),
            Self::Tools => tools::run(bench),
            Self::Paced => paced::run(bench),
            Self::Stalled => stalled::run(bench),
            Self::Start => start::run(bench),
            Self::Counts => counts::run(bench),
            Self::Interpreters => interpreters::run(bench),
        }
    }
}
