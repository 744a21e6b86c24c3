//! `Task` and `Mode`: the arguments of a client, which the driver writes and the client parses.

use std::time::Duration;

use crate::Scenario;

/// The task of a client: `MODE BASE SCENARIO [NUMBER]`.
#[derive(Debug, Clone)]
pub struct Task {
    /// How.
    pub mode: Mode,
    /// The address of the server, such as `http://127.0.0.1:8080`.
    pub base: String,
    /// The requested answer.
    pub scenario: Scenario,
}

/// The way in which a client is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One turn in a fresh process.
    Cold,
    /// One turn after a short one.
    Warm,
    /// This many concurrent streams.
    Paced(usize),
    /// One stream whose reader stops for so long.
    Stalled(Duration),
}

impl Mode {
    /// The arguments of a client.
    #[must_use]
    pub fn arguments(self, base: &str, scenario: Scenario) -> Vec<String> {
        let (name, number) = match self {
            Self::Cold => ("cold", None),
            Self::Warm => ("warm", None),
            Self::Paced(streams) => ("paced", Some(streams.to_string())),
            Self::Stalled(pause) => ("stalled", Some(pause.as_millis().to_string())),
        };
        let arguments = [name.to_owned(), base.to_owned(), scenario.to_string()];
        arguments.into_iter().chain(number).collect()
    }
}

impl Task {
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let (mode, base, scenario) = (arguments.next()?, arguments.next()?, arguments.next()?);
        let number = arguments.next().and_then(|number| number.parse().ok());
        let mode = match (mode.as_str(), number) {
            ("cold", None) => Mode::Cold,
            ("warm", None) => Mode::Warm,
            ("paced", Some(streams)) => Mode::Paced(streams),
            ("stalled", Some(pause)) => Mode::Stalled(Duration::from_millis(pause as u64)),
            _ => return None,
        };
        Some(Self { mode, base, scenario: scenario.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn a_task_reads_as_it_is_written() {
        let scenario = Scenario::new(Kind::Text, 10, 1);
        for mode in [Mode::Cold, Mode::Warm, Mode::Paced(3), Mode::Stalled(Duration::from_millis(5))] {
            let task = Task::parse(mode.arguments("http://host", scenario).into_iter()).expect("a task");
            assert_eq!((task.mode, task.base.as_str(), task.scenario), (mode, "http://host", scenario));
        }
    }
}
