//! `Leniency`: policy for arguments that do not fit their schema but have one clear meaning.

/// Treatment of arguments that do not fit their schema but have only one possible meaning.
///
/// | the model writes | where the schema wants | [`Strict`] | [`NullIsAbsent`] | [`Lenient`] |
/// | --- | --- | --- | --- | --- |
/// | `"unit": null` | a text, and does not require `unit` | refused | left out | left out |
/// | `"days": "3"` | an integer | refused | refused | `3` |
/// | `"share": "0.5"` | a number | refused | refused | `0.5` |
/// | `"exact": "true"` | a boolean | refused | refused | `true` |
/// | anything else that does not fit | | refused | refused | refused |
///
/// [`Strict`]: Self::Strict
/// [`NullIsAbsent`]: Self::NullIsAbsent
/// [`Lenient`]: Self::Lenient
///
/// A refused call is answered with an error that names the position. Numbers must be as JSON writes them: `"03"`,
/// `" 3"` and `"3.0"` for an integer are refused, as is `"True"`. Converted arguments must fit the whole schema.
/// Only the tool sees the conversion: the call is stored and sent as the model wrote it.
///
/// # Example
/// ```
/// use advisor_core::{Leniency, ToolDefinition};
/// use serde_json::json;
///
/// let definition = ToolDefinition::new("weather", "Tells the weather.", json!({"type": "object"}));
/// let definition = definition.with_leniency(Leniency::Lenient);
/// assert_eq!(definition.leniency, Some(Leniency::Lenient));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Leniency {
    /// The schema decides.
    Strict,
    /// `null` for an optional property counts as absent.
    #[default]
    NullIsAbsent,
    /// Like `NullIsAbsent`; also converts texts that are exactly the number or boolean of the schema. Not the
    /// default: a model that reads the error learns to write numbers.
    Lenient,
}
