//! `PromptTemplate`: a text with places for values.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::str::FromStr;

use advisor_core::{Error, Result, Text};

/// A text with places for values: `You are {name}.`
///
/// A name has letters, digits and `_`. `{{` and `}}` are braces. Values are inserted as they are: a value cannot add
/// further places.
///
/// # Example
/// ```
/// use common_advisors::PromptTemplate;
///
/// let template: PromptTemplate = "Answer {name} in {language}. Write {{}} for nothing.".parse()?;
/// let text = template.render([("name", "Ann"), ("language", "French")])?;
/// assert_eq!(text, "Answer Ann in French. Write {} for nothing.");
/// # Ok::<(), advisor_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptTemplate {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The place of the value of this name.
    Value(Text),
}

impl PromptTemplate {
    /// Returns the text with these values. Values without a place are not used.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) for a place without a value. The text names it.
    pub fn render<K, V>(&self, values: impl IntoIterator<Item = (K, V)>) -> Result<String>
    where
        K: Into<Text>,
        V: Into<Text>,
    {
        let values: BTreeMap<Text, Text> =
            values.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        self.render_with(&values)
    }

    pub(super) fn render_with(&self, values: &BTreeMap<Text, Text>) -> Result<String> {
        let mut text = String::new();
        for piece in &self.pieces {
            text.push_str(match piece {
                Piece::Text(text) => text,
                Piece::Value(name) => {
                    let name: &str = name.borrow();
                    values.get(name).ok_or_else(|| {
                        Error::configuration(format!(
                            "the template has no value for `{{{name}}}`; give it one"
                        ))
                    })?
                }
            });
        }
        Ok(text)
    }

    /// Returns the names of the values, in the order of their first places.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let mut known = Vec::new();
        self.pieces.iter().filter_map(move |piece| match piece {
            Piece::Value(name) if !known.contains(&name) => {
                known.push(name);
                Some(name.as_str())
            }
            _ => None,
        })
    }
}

/// Reads a template. An error is of kind [`Configuration`](advisor_core::ErrorKind::Configuration): a brace without its
/// counterpart, or a name with other characters.
impl FromStr for PromptTemplate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (mut pieces, mut before, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            let (literal, braces) = rest.split_at(at);
            before.push_str(literal);
            if let Some(behind) = braces.strip_prefix("{{") {
                before.push('{');
                rest = behind;
            } else if let Some(behind) = braces.strip_prefix("}}") {
                before.push('}');
                rest = behind;
            } else {
                let (name, behind) = place(braces).ok_or_else(|| misplaced(braces))?;
                pieces.extend(nonempty(std::mem::take(&mut before)));
                pieces.push(Piece::Value(name.into()));
                rest = behind;
            }
        }
        before.push_str(rest);
        pieces.extend(nonempty(before));
        Ok(Self { pieces })
    }
}

/// Returns the name of a place, and the text behind it.
fn place(braces: &str) -> Option<(&str, &str)> {
    let (name, behind) = braces.strip_prefix('{')?.split_once('}')?;
    let fits = |letter: char| letter.is_alphanumeric() || letter == '_';
    (!name.is_empty() && name.chars().all(fits)).then_some((name, behind))
}

fn nonempty(text: String) -> Option<Piece> {
    (!text.is_empty()).then_some(Piece::Text(text))
}

fn misplaced(braces: &str) -> Error {
    let shown: String = braces.chars().take(20).collect();
    Error::configuration(format!(
        "the template has a brace that begins no name, at `{}`; write `{{{{` or `}}}}` for a brace itself",
        shown.escape_debug()
    ))
}

#[cfg(test)]
mod tests {
    use advisor_core::ErrorKind;

    use super::*;

    #[test]
    fn values_are_inserted_as_they_are() {
        let template: PromptTemplate = "{a}{b_2} {a}{{a}}".parse().unwrap();
        assert_eq!(template.names().collect::<Vec<_>>(), ["a", "b_2"]);
        assert_eq!(template.render([("a", "{b_2}"), ("b_2", "}}")]).unwrap(), "{b_2}}} {b_2}{a}");
        let empty: PromptTemplate = "".parse().unwrap();
        assert_eq!(empty.render([("a", "b")]).unwrap(), "");
    }

    #[test]
    fn missing_values_and_stray_braces_are_named() {
        let template: PromptTemplate = "Hi {name}".parse().unwrap();
        let error = template.render([("other", "Ann")]).unwrap_err();
        assert!(error.to_string().contains("`{name}`"), "{error}");
        for text in ["{", "}", "a {} b", "{a b}", "{a", "{{}", "{ä-}"] {
            let error = text.parse::<PromptTemplate>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{text}");
        }
    }
}
