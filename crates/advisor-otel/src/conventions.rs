//! `Conventions`: the version, also from the environment.

/// The environment variable with which OpenTelemetry's instrumentations switch conventions.
const OPT_IN: &str = "OTEL_SEMCONV_STABILITY_OPT_IN";
/// Its value for the latest conventions for generative AI.
const LATEST: &str = "gen_ai_latest_experimental";

/// A version of OpenTelemetry's conventions for generative AI.
///
/// All of them are in development, so names change between versions. The spans of a chain do not; the exporter and
/// the metrics translate them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Conventions {
    /// Semantic conventions 1.36: the version that older instrumentations keep by default. It has no names for the
    /// time to the first chunk, for cached and reasoning tokens, and for content, and names the provider `gen_ai.system`.
    V1_36,
    /// Semantic conventions 1.41: the last version before those for generative AI became separate. It has
    /// `gen_ai.client.operation.*` and `cache_creation`.
    V1_41,
    /// Semantic conventions for generative AI 0.1, the first separate release. It has `gen_ai.client.inference.*`,
    /// `cache_write`, tokens as counters, and durations of tools and turns.
    #[default]
    GenAi0_1,
}

impl Conventions {
    /// Returns the version that the environment selects for all instrumentations of the process.
    ///
    /// With `gen_ai_latest_experimental` in the comma-separated list `OTEL_SEMCONV_STABILITY_OPT_IN`, it is the
    /// latest one. Without, it is 1.36, which OpenTelemetry's other instrumentations keep until then.
    #[must_use]
    pub fn from_env() -> Self {
        Self::from_opt_in(&std::env::var(OPT_IN).unwrap_or_default())
    }

    fn from_opt_in(list: &str) -> Self {
        if list.split(',').any(|value| value.trim() == LATEST) { Self::default() } else { Self::V1_36 }
    }
}

#[cfg(test)]
mod tests {
    use super::Conventions;

    #[test]
    fn opt_in_selects_latest() {
        for latest in ["gen_ai_latest_experimental", "http/dup, gen_ai_latest_experimental"] {
            assert_eq!(Conventions::from_opt_in(latest), Conventions::GenAi0_1);
        }
        for other in ["", "http", "gen_ai_latest_experimental_2"] {
            assert_eq!(Conventions::from_opt_in(other), Conventions::V1_36);
        }
    }
}
