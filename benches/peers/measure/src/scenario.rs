//! `Scenario`: the shape and size of an answer, as the path of a request names them.

use std::fmt;
use std::str::FromStr;

/// The answer of the server, named in the path of a request: `text-20000-16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scenario {
    /// The shape of the answer.
    pub kind: Kind,
    /// The number of chunks; for [`Kind::Tools`] the number of rounds with calls.
    pub count: usize,
    /// The number of chunks per write; for [`Kind::Tools`] the number of calls per round; for [`Kind::Paced`]
    /// the milliseconds between two chunks.
    pub by: usize,
}

/// The shape of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Text, one token a chunk.
    Text,
    /// Text, with OpenAI's field of random characters in each chunk.
    Obfuscated,
    /// Text, with the usage so far in each chunk.
    Usage,
    /// Reasoning in each chunk, then a short text.
    Reasoning,
    /// One tool call, with a piece of its arguments in each chunk; after its result a short text.
    Arguments,
    /// Rounds of parallel tool calls, then a short text.
    Tools,
    /// Text, one chunk at a time, with the time of sending.
    Paced,
}

const NAMES: [(Kind, &str); 7] = [
    (Kind::Text, "text"),
    (Kind::Obfuscated, "obfuscated"),
    (Kind::Usage, "usage"),
    (Kind::Reasoning, "reasoning"),
    (Kind::Arguments, "arguments"),
    (Kind::Tools, "tools"),
    (Kind::Paced, "paced"),
];

impl Scenario {
    /// A scenario.
    #[must_use]
    pub fn new(kind: Kind, count: usize, by: usize) -> Self {
        Self { kind, count, by }
    }

    /// Returns whether the client offers its tool.
    #[must_use]
    pub fn has_tools(self) -> bool {
        matches!(self.kind, Kind::Arguments | Kind::Tools)
    }

    /// A short one of the same kind, which fills caches and pools before the measured one.
    #[must_use]
    pub fn warm_up(self) -> Self {
        let (count, by) = match self.kind {
            Kind::Tools | Kind::Paced => (2, 1),
            _ => (200, 16),
        };
        Self { kind: self.kind, count, by }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(kind, _)| *kind == self.kind).map_or("", |(_, name)| name);
        write!(f, "{name}-{}-{}", self.count, self.by)
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let mut parts = text.split('-');
            let name = parts.next()?;
            let (kind, _) = NAMES.iter().find(|(_, other)| *other == name)?;
            let (count, by) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            Some(Self { kind: *kind, count, by })
        };
        parse().ok_or_else(|| format!("`{text}` is no scenario, such as `text-20000-16`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_reads_as_it_is_written() {
        for (kind, _) in NAMES {
            let scenario = Scenario::new(kind, 20_000, 16);
            assert_eq!(scenario.to_string().parse(), Ok(scenario));
        }
        assert!("text-2".parse::<Scenario>().is_err());
    }
}
