//! `Misfit`: why a text does not have the form, for the model, and without content for an error.

use serde_json::Value;
use serde_path_to_error::Segment;

/// The reason why a text does not have the requested form.
#[derive(Debug, Clone)]
pub(crate) enum Misfit {
    /// It is no JSON. The parser quotes nothing.
    Syntax(String),
    /// The type does not fit, at this place in the value, outermost first. The problem can quote the value.
    Type { place: Vec<Step>, problem: String },
    /// A caller's check failed, whose error can be any text.
    Check(String),
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Index(usize),
    Name(String),
    Unknown,
}

impl Misfit {
    pub(crate) fn of_syntax(error: &serde_json::Error) -> Self {
        Self::Syntax(format!("it is no JSON: {error}"))
    }

    pub(crate) fn of_type(error: &serde_path_to_error::Error<serde_json::Error>) -> Self {
        let step = |segment: &Segment| match segment {
            Segment::Seq { index } => Step::Index(*index),
            Segment::Map { key: name } | Segment::Enum { variant: name } => Step::Name(name.clone()),
            Segment::Unknown => Step::Unknown,
        };
        Self::Type { place: error.path().iter().map(step).collect(), problem: error.inner().to_string() }
    }

    /// Returns this misfit of a value that is a property of the answer.
    pub(crate) fn within(mut self, property: &str) -> Self {
        if let Self::Type { place, .. } = &mut self {
            place.insert(0, Step::Name(property.into()));
        }
        self
    }

    /// Returns the text for the model, which can quote the answer.
    pub(crate) fn for_model(&self) -> String {
        match self {
            Self::Type { place, problem } => at(&pointer(place, |_| true), problem),
            Self::Syntax(problem) | Self::Check(problem) => problem.clone(),
        }
    }

    /// Returns the text without content of the answer, if there is one. The names in it are those of the schema.
    pub(crate) fn without_content(&self, schema: &Value) -> Option<String> {
        match self {
            Self::Syntax(problem) => Some(problem.clone()),
            Self::Type { place, problem } => {
                let place = pointer(place, |name| has_property(schema, name));
                Some(at(&place, &without_values(problem)))
            }
            Self::Check(_) => None,
        }
    }
}

/// Returns a place as a JSON pointer, with `?` for a name that must not be shown.
fn pointer(place: &[Step], is_shown: impl Fn(&str) -> bool) -> String {
    let step = |step: &Step| match step {
        Step::Index(index) => format!("/{index}"),
        Step::Name(name) if is_shown(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
        Step::Name(_) | Step::Unknown => "/?".into(),
    };
    place.iter().map(step).collect()
}

fn at(place: &str, problem: &str) -> String {
    if place.is_empty() { problem.into() } else { format!("{place}: {problem}") }
}

/// Checks whether a schema names this property, at any depth.
fn has_property(schema: &Value, name: &str) -> bool {
    match schema {
        Value::Object(object) => {
            let properties = object.get("properties").and_then(Value::as_object);
            properties.is_some_and(|properties| properties.contains_key(name))
                || object.values().any(|value| has_property(value, name))
        }
        Value::Array(items) => items.iter().any(|item| has_property(item, name)),
        _ => false,
    }
}

/// Returns an error of deserialisation without content of the answer. Of a text of unknown form, nothing is left.
fn without_values(problem: &str) -> String {
    // With names of the type.
    const OF_TYPE: [&str; 3] = ["missing field `", "duplicate field `", "data did not match any variant"];
    // A name of the answer follows, which can contain all that serde writes behind it.
    const OF_ANSWER: [&str; 2] = ["unknown variant", "unknown field"];
    if OF_TYPE.iter().any(|beginning| problem.starts_with(beginning)) {
        return problem.into();
    }
    if let Some(what) = OF_ANSWER.iter().find(|what| problem.starts_with(**what)) {
        return (*what).into();
    }
    // What the type expects comes last, and is text of the type.
    let known = problem.rsplit_once(", expected ").and_then(|(what, expected)| {
        let what = without_value(what)?;
        Some(format!("{what}, expected {expected}"))
    });
    known.unwrap_or_else(|| "the value does not fit".into())
}

/// Returns `invalid type: string "a"` as `invalid type: string`, and a length as it is.
fn without_value(problem: &str) -> Option<String> {
    const KINDS: [&str; 10] = [
        "boolean", "integer", "floating point", "character", "string", "null", "sequence", "map",
        "unit value", "newtype variant",
    ];
    if problem.strip_prefix("invalid length ").is_some_and(|length| length.parse::<usize>().is_ok()) {
        return Some(problem.into());
    }
    let (what, value) =
        problem.split_once(": ").filter(|(what, _)| ["invalid type", "invalid value"].contains(what))?;
    let kind = KINDS.iter().find(|kind| value.starts_with(**kind))?;
    Some(format!("{what}: {kind}"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use schemars::JsonSchema;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer};

    use crate::structured::OutputFormat;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only its form counts")]
    struct Person {
        #[serde(alias = "years")]
        age: u8,
        mood: Mood,
        scores: HashMap<String, u8>,
        pair: (u8, u8),
        #[serde(default, deserialize_with = "even")]
        number: u8,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    enum Mood {
        Good,
        Bad,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only its form counts")]
    struct Outer {
        #[serde(flatten)]
        inner: Inner,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only its form counts")]
    struct Inner {
        size: u8,
    }

    /// A type whose custom error begins like one of serde.
    #[derive(Debug, JsonSchema)]
    struct Odd;

    impl<'de> Deserialize<'de> for Odd {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            Err(D::Error::custom(format!("invalid value {text}, expected no {text}")))
        }
    }

    fn even<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
        let number = u8::deserialize(deserializer)?;
        if number % 2 == 0 {
            Ok(number)
        } else {
            Err(D::Error::custom(format!("{number} is canary and odd")))
        }
    }

    /// The model reads its value, and an error has the place and the problem only.
    #[test]
    fn law_r3_text_of_misfit_has_no_content() {
        let people = OutputFormat::for_type::<Vec<Person>>();
        for (person, told, shown) in [
            (
                r#"{"age": "canary, expected 5"}"#,
                r#"/value/0/age: invalid type: string "canary, expected 5", expected u8"#,
                "/value/0/age: invalid type: string, expected u8",
            ),
            (
                r#"{"age": 300}"#,
                "/value/0/age: invalid value: integer `300`, expected u8",
                "/value/0/age: invalid value: integer, expected u8",
            ),
            (
                r#"{"pair": [1]}"#,
                "/value/0/pair: invalid length 1, expected a tuple of size 2",
                "/value/0/pair: invalid length 1, expected a tuple of size 2",
            ),
            (
                r#"{"mood": "canary`, expected"}"#,
                "/value/0/mood: unknown variant `canary`, expected`, expected `Good` or `Bad`",
                "/value/0/mood: unknown variant",
            ),
            (
                r#"{"scores": {"canary": []}}"#,
                "/value/0/scores/canary: invalid type: sequence, expected u8",
                "/value/0/scores/?: invalid type: sequence, expected u8",
            ),
            (
                r#"{"canary": 1}"#,
                "/value/0/canary: unknown field `canary`, expected one of `age`, `years`, `mood`, `scores`, `pair`, `number`",
                "/value/0/?: unknown field",
            ),
            (
                r#"{"number": 7}"#,
                "/value/0/number: 7 is canary and odd",
                "/value/0/number: the value does not fit",
            ),
            ("{}", "/value/0: missing field `age`", "/value/0: missing field `age`"),
            (
                r#"{"age": 1, "years": 1}"#,
                "/value/0: duplicate field `age`",
                "/value/0: duplicate field `age`",
            ),
        ] {
            let misfit = people.value_in(&format!(r#"{{"value": [{person}]}}"#)).unwrap_err();
            assert_eq!(misfit.for_model(), told);
            assert_eq!(misfit.without_content(people.schema()).unwrap(), shown);
        }
        // Where names can end like serde's text, what is expected cannot be told from content.
        let (nothing, outer) = (OutputFormat::for_type::<Nothing>(), OutputFormat::for_type::<Outer>());
        for (form, answer, expected) in [
            (&nothing, r#"{"a`, expected `canary": 1}"#, "/?: unknown field"),
            (&outer, r#"{"size": 1, "a`, expected `canary": 1}"#, "unknown field"),
            (&OutputFormat::for_type::<Odd>(), r#"{"value": "canary"}"#, "/value: the value does not fit"),
        ] {
            let misfit = form.value_in(answer).unwrap_err();
            assert!(misfit.for_model().contains("canary"), "{}", misfit.for_model());
            assert_eq!(misfit.without_content(form.schema()).unwrap(), expected);
        }
        let misfit = people.value_in("canary").unwrap_err();
        let text = "it is no JSON: expected value at line 1 column 1";
        assert_eq!(
            (misfit.for_model(), misfit.without_content(people.schema())),
            (text.into(), Some(text.into()))
        );
        let checked =
            OutputFormat::new("a", serde_json::json!({"type": "object"}), |value| Err(value.to_string()));
        let misfit = checked.value_in("{\"canary\": 1}").unwrap_err();
        assert!(misfit.for_model().contains("canary") && misfit.without_content(checked.schema()).is_none());
    }
}
