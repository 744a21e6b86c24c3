//! Bounds of the reading of one wire format by that of another, whatever their baselines are.

/// A case whose instructions are bounded by those of another one.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// The name of the bounded case.
    pub case: &'static str,
    /// The name of the case that is the measure.
    pub measure: &'static str,
    /// How many times the instructions of the measure are allowed.
    pub times: f64,
}

impl Bound {
    /// Returns the instructions that the case may take if the measure takes this many.
    #[must_use]
    pub fn most(&self, measured: f64) -> f64 {
        measured * self.times
    }
}

const TEXT: &str = "read, OpenAI";
const REASONING: &str = "read, DeepSeek, reasoning";
const ARGUMENTS: &str = "read, OpenAI, arguments of a call";

/// The bounds, by Chat Completions. Ollama's own API and Gemini have no arguments in pieces.
pub const BOUNDS: [Bound; 10] = [
    text("read, Responses"),
    text("read, Anthropic"),
    text("read, Gemini"),
    text("read, Ollama"),
    other("read, Responses, reasoning", REASONING),
    other("read, Anthropic, thinking", REASONING),
    other("read, Gemini, thoughts", REASONING),
    other("read, Ollama, thinking", REASONING),
    other("read, Responses, arguments of a call", ARGUMENTS),
    other("read, Anthropic, arguments of a call", ARGUMENTS),
];

const fn text(case: &'static str) -> Bound {
    Bound { case, measure: TEXT, times: 1.5 }
}

const fn other(case: &'static str, measure: &'static str) -> Bound {
    Bound { case, measure, times: 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_names_two_cases() {
        let names: Vec<String> = crate::all().into_iter().map(|case| case.name).collect();
        for Bound { case, measure, .. } in BOUNDS {
            assert!([case, measure].iter().all(|name| names.iter().any(|other| other == name)), "{case}");
        }
    }

    #[test]
    fn kept_counts_are_within_their_bounds() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/baselines");
        for file in std::fs::read_dir(folder).unwrap() {
            let counts = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let of = |name: &str| -> f64 {
                let mut lines = counts.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('\t'));
                lines.next().and_then(|fields| fields.split('\t').next()?.parse().ok()).unwrap()
            };
            for bound in BOUNDS {
                assert!(of(bound.case) <= bound.most(of(bound.measure)), "{}", bound.case);
            }
        }
    }
}
