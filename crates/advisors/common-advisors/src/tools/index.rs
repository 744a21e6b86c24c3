//! `Index`: finds tools by the words of a query.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use advisor_core::{ToolDefinition, ToolSet};
use serde_json::Value;

/// The weight of a word in the name of a tool, beside one in its description.
const NAME_WEIGHT: f64 = 3.0;

/// The weight of a query's word that is only the beginning of a tool's word, or the other way round.
const PREFIX_WEIGHT: f64 = 0.5;

/// The number of characters of a query that count. A model may write any text.
const QUERY_LENGTH: usize = 256;

/// The number of queries whose tools are kept. A conversation asks for them in each round.
const KEPT_QUERIES: usize = 256;

/// The number of tools that a query finds at most.
const MOST_FOUND: usize = 8;

/// The length from which a word counts as the beginning of another one.
const PREFIX_LENGTH: usize = 4;

/// The words of tools, by tool.
#[derive(Debug)]
pub(super) struct Index {
    tools: Vec<HashMap<String, f64>>,
    /// The number of tools that have a word.
    counts: HashMap<String, usize>,
    /// The tools found by earlier queries.
    found: Mutex<HashMap<String, Vec<usize>>>,
}

impl Index {
    pub(super) fn new(tools: &ToolSet) -> Self {
        let tools: Vec<_> = tools.definitions().map(weights).collect();
        let mut counts = HashMap::new();
        for word in tools.iter().flat_map(HashMap::keys) {
            *counts.entry(word.clone()).or_default() += 1;
        }
        Self { tools, counts, found: Mutex::default() }
    }

    /// Returns the places of the tools that fit a query, the best first, at most 8.
    pub(super) fn find(&self, query: &str) -> Vec<usize> {
        let asked: String = query.chars().take(QUERY_LENGTH).collect();
        let mut kept = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.get(&asked) {
            return found.clone();
        }
        let found = self.search(&asked);
        if kept.len() >= KEPT_QUERIES {
            kept.clear();
        }
        kept.insert(asked, found.clone());
        found
    }

    fn search(&self, query: &str) -> Vec<usize> {
        let mut query = words(query);
        query.sort();
        query.dedup();
        let mut found: Vec<_> = self
            .tools
            .iter()
            .enumerate()
            .map(|(place, tool)| (place, query.iter().map(|word| self.score_of(word, tool)).sum::<f64>()))
            .filter(|(_, score)| *score > 0.0)
            .collect();
        found.sort_by(|(one, first), (other, second)| second.total_cmp(first).then(one.cmp(other)));
        found.into_iter().take(MOST_FOUND).map(|(place, _)| place).collect()
    }

    /// Returns the best score of a word. Rare words count more.
    fn score_of(&self, word: &str, tool: &HashMap<String, f64>) -> f64 {
        let scores = tool.iter().map(|(own, weight)| weight * likeness(word, own) * self.rarity(own));
        scores.fold(0.0, f64::max)
    }

    fn rarity(&self, word: &str) -> f64 {
        let count = self.counts.get(word).copied().unwrap_or(1);
        #[expect(clippy::cast_precision_loss, reason = "numbers of tools are small")]
        let rarity = (self.tools.len() as f64 / count as f64).ln_1p();
        rarity
    }
}

fn likeness(word: &str, own: &str) -> f64 {
    let is_prefix =
        word.len().min(own.len()) >= PREFIX_LENGTH && (own.starts_with(word) || word.starts_with(own));
    match word == own {
        true => 1.0,
        false if is_prefix => PREFIX_WEIGHT,
        false => 0.0,
    }
}

/// Returns the words of a tool with their weights: those of its name, its description and its parameters.
fn weights(tool: &ToolDefinition) -> HashMap<String, f64> {
    let mut weights = HashMap::new();
    let mut described = tool.description.to_string();
    for (name, parameter) in
        tool.parameters.pointer("/properties").and_then(Value::as_object).into_iter().flatten()
    {
        let description = parameter.get("description").and_then(Value::as_str).unwrap_or_default();
        described = format!("{described} {name} {description}");
    }
    for word in words(&described) {
        weights.insert(word, 1.0);
    }
    for word in words(&tool.name) {
        weights.insert(word, NAME_WEIGHT);
    }
    weights
}

/// Returns the words of a text in lower case, without single letters. `readFile` and `read_file` have two.
fn words(text: &str) -> Vec<String> {
    let mut split = String::with_capacity(text.len());
    let mut was_lower = false;
    for letter in text.chars() {
        if was_lower && letter.is_uppercase() {
            split.push(' ');
        }
        was_lower = letter.is_lowercase() || letter.is_numeric();
        if letter.is_alphanumeric() {
            split.extend(letter.to_lowercase());
        } else {
            split.push(' ');
        }
    }
    split.split_whitespace().filter(|word| word.chars().nth(1).is_some()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use advisor_core::{Tool, ToolError, ToolInvocation, ToolOutput, async_trait};
    use serde_json::json;

    use super::*;

    struct Named(ToolDefinition);

    #[async_trait]
    impl Tool for Named {
        fn definition(&self) -> &ToolDefinition {
            &self.0
        }
        async fn run(&self, _: ToolInvocation) -> Result<ToolOutput, ToolError> {
            Ok("done".into())
        }
    }

    #[test]
    fn the_best_tools_come_first() {
        let tool = |name: &str, description: &str, parameter: &str| {
            let schema = json!({"type": "object", "properties": {parameter: {"description": "A value."}}});
            Named(ToolDefinition::new(name, description, schema))
        };
        let tools = ToolSet::new()
            .with(tool("readFile", "Returns the text of a file.", "path"))
            .with(tool("write_file", "Changes a file.", "path"))
            .with(tool("weather", "Tells the forecast of a city.", "city"))
            .with(tool("ÜberSetzung", "Translates into German.", "text"));
        let index = Index::new(&tools);
        for (query, expected) in [
            ("read a file", vec![0, 1]),
            ("forecasts", vec![2]),
            ("CITY", vec![2]),
            ("files", vec![0, 1]),
            ("über", vec![3]),
            ("path of a file to write", vec![1, 0, 2]),
            ("", vec![]),
            ("???", vec![]),
            ("zebra", vec![]),
        ] {
            assert_eq!(index.find(query), expected, "{query}");
        }
    }
}
