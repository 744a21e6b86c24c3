//! `CallDecision` and `ToolPolicy`: decisions about calls before they run, by a hook or by rules as data.

use std::fmt;

use advisor_core::{Error, Result, Text, ToolDefinition, ToolSet};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The decision about a call that could run.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum CallDecision {
    /// The call runs.
    Run,
    /// The call runs with these arguments, which must fit the schema of the tool.
    ///
    /// The call is stored and sent as the model wrote it. Its events show these arguments, and its result begins with a
    /// sentence that names them, so that the model knows them.
    RunWith(Value),
    /// The call does not run. The model reads this reason.
    Deny(Text),
    /// The call is left to the caller, such as for an approval: the turn ends after the other calls have run.
    Ask,
}

impl fmt::Debug for CallDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and reasons are content and must not be logged.
        f.write_str(match self {
            Self::Run => "Run",
            Self::RunWith(_) => "RunWith(…)",
            Self::Deny(_) => "Deny(…)",
            Self::Ask => "Ask",
        })
    }
}

/// Rules about which calls run, as data, such as from a file of the operator.
///
/// The first rule that matches a call decides. Without one, [`otherwise`](Self::otherwise) does. The arguments are those
/// that were checked against the schema of the tool.
///
/// # Example
/// ```
/// use tool_call_advisor::{ToolCallAdvisor, ToolPolicy};
///
/// let policy: ToolPolicy = serde_json::from_str(r#"{
///     "rules": [
///         {"tools": ["read_*"], "then": "allow"},
///         {"tools": ["pay"], "when": [{"at_most": {"pointer": "/amount", "number": 10}}], "then": "allow"},
///         {"tools": ["pay"], "then": "ask"},
///         {"tools": ["search"], "then": {"edit": {"limit": 5}}}
///     ],
///     "otherwise": {"deny": "this tool is switched off"}
/// }"#)?;
/// let advisor = ToolCallAdvisor::builder().policy(policy).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::exhaustive_structs, reason = "callers write it with `..ToolPolicy::default()`")]
pub struct ToolPolicy {
    /// The rules, in order.
    #[serde(default)]
    pub rules: Vec<ToolRule>,
    /// The action for calls that no rule matches. Default: allow.
    #[serde(default)]
    pub otherwise: PolicyAction,
}

/// A rule of a [`ToolPolicy`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::exhaustive_structs, reason = "callers write it with `..ToolRule::new(…)`")]
pub struct ToolRule {
    /// The names of the tools. A name that ends with `*` matches all names with this beginning.
    pub tools: Vec<Text>,
    /// The tests of the arguments, all of which must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<ArgumentTest>,
    /// The action.
    pub then: PolicyAction,
}

/// A test of one value in the arguments. It fails if the value is absent or of another type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ArgumentTest {
    /// The value equals this one.
    Equals {
        /// The position of the value, as a JSON pointer such as `/amount`.
        pointer: Text,
        /// The other value.
        value: Value,
    },
    /// The text begins with this one.
    StartsWith {
        /// The position of the text.
        pointer: Text,
        /// The beginning.
        text: Text,
    },
    /// The number is at most this one.
    AtMost {
        /// The position of the number.
        pointer: Text,
        /// The largest number.
        number: f64,
    },
}

/// The action of a rule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PolicyAction {
    /// The call runs.
    #[default]
    Allow,
    /// The call does not run, and the model reads this reason.
    Deny(Text),
    /// The call is left to the caller.
    Ask,
    /// The call runs with its arguments after this merge patch (RFC 7396).
    Edit(Value),
}

impl ToolPolicy {
    /// Checks the rules for mistakes that would make them match nothing, or something else: a rule without tools, an edit
    /// that is no object, a `*` that is not at the end of a name, and a pointer without its leading `/`.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration).
    pub(crate) fn validate(&self) -> Result<()> {
        let actions = self.rules.iter().map(|rule| &rule.then).chain([&self.otherwise]);
        let problem = self.rules.iter().find_map(ToolRule::problem);
        let problem = problem.or_else(|| actions.into_iter().find_map(PolicyAction::problem));
        problem.map_or(Ok(()), |problem| Err(Error::configuration(format!("the tool policy: {problem}"))))
    }

    /// Checks that each name in the rules is that of a tool, and that each pointer begins with one of its parameters.
    ///
    /// A name that matches no tool leaves the tool that was meant unguarded. The loop cannot check it, since advisors and
    /// prompts add tools.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration). The text has the name or the pointer, and the
    /// names of the tools.
    pub fn validate_for(&self, tools: &ToolSet) -> Result<()> {
        self.validate()?;
        let problem = self.rules.iter().find_map(|rule| rule.problem_for(tools));
        problem.map_or(Ok(()), |problem| Err(Error::configuration(format!("the tool policy: {problem}"))))
    }

    /// Returns the decision about a call of this tool.
    pub(crate) fn decide(&self, tool: &str, arguments: &Value) -> CallDecision {
        let rule = self.rules.iter().find(|rule| rule.matches(tool, arguments));
        rule.map_or(&self.otherwise, |rule| &rule.then).decide(arguments)
    }
}

impl ToolRule {
    /// Creates a rule for these tools.
    pub fn new(tools: impl IntoIterator<Item = impl Into<Text>>, then: PolicyAction) -> Self {
        Self { tools: tools.into_iter().map(Into::into).collect(), when: Vec::new(), then }
    }

    fn problem(&self) -> Option<String> {
        let wrong_name = |name: &&Text| name.trim_end_matches('*').contains('*') || name.ends_with("**");
        if let Some(name) = self.tools.iter().find(wrong_name) {
            return Some(format!(
                "`{name}` has a `*` that is not at its end; name the tools, or their beginning"
            ));
        }
        let pointer = self.when.iter().map(ArgumentTest::pointer);
        let wrong = pointer.into_iter().find(|pointer| !pointer.is_empty() && !pointer.starts_with('/'));
        let none = self.tools.is_empty().then(|| String::from("a rule has no tools, so it matches nothing"));
        none.or_else(|| wrong.map(|pointer| format!("the pointer `{pointer}` begins without `/`")))
    }

    fn problem_for(&self, tools: &ToolSet) -> Option<String> {
        let named = |name: &Text| {
            tools.definitions().filter(move |tool| is_named(name, &tool.name)).collect::<Vec<_>>()
        };
        if let Some(unknown) = self.tools.iter().find(|name| named(name).is_empty()) {
            let known: Vec<_> = tools.definitions().map(|tool| tool.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Some(format!("no tool is called `{unknown}`; the tools are {known}"));
        }
        // A pattern may match tools without the parameter. A tool that is named must have it.
        let has = |name: &Text, pointer: &str| match name.ends_with('*') {
            true => named(name).into_iter().any(|tool| has_parameter(tool, pointer)),
            false => named(name).into_iter().all(|tool| has_parameter(tool, pointer)),
        };
        let mut pointers = self.when.iter().map(ArgumentTest::pointer);
        let wrong = pointers.find(|pointer| !self.tools.iter().all(|name| has(name, pointer)))?;
        Some(format!("the pointer `{wrong}` begins with no parameter of one of {}", self.tools.join(", ")))
    }

    fn matches(&self, tool: &str, arguments: &Value) -> bool {
        self.tools.iter().any(|name| is_named(name, tool))
            && self.when.iter().all(|test| test.holds(arguments))
    }
}

impl ArgumentTest {
    fn pointer(&self) -> &Text {
        match self {
            Self::Equals { pointer, .. }
            | Self::StartsWith { pointer, .. }
            | Self::AtMost { pointer, .. } => pointer,
        }
    }

    fn holds(&self, arguments: &Value) -> bool {
        match self {
            Self::Equals { pointer, value } => {
                arguments.pointer(pointer).is_some_and(|other| is_equal(other, value))
            }
            Self::StartsWith { pointer, text } => {
                let value = arguments.pointer(pointer).and_then(Value::as_str);
                value.is_some_and(|value| value.starts_with(text.as_str()))
            }
            Self::AtMost { pointer, number } => {
                let value = arguments.pointer(pointer).and_then(Value::as_f64);
                value.is_some_and(|value| value <= *number)
            }
        }
    }
}

impl PolicyAction {
    fn problem(&self) -> Option<String> {
        let is_wrong = matches!(self, Self::Edit(patch) if !patch.is_object());
        is_wrong.then(|| String::from("an edit is an object, whose members replace those of the arguments"))
    }

    fn decide(&self, arguments: &Value) -> CallDecision {
        match self {
            Self::Allow => CallDecision::Run,
            Self::Deny(reason) => CallDecision::Deny(reason.clone()),
            Self::Ask => CallDecision::Ask,
            Self::Edit(patch) => {
                let mut edited = arguments.clone();
                merge(&mut edited, patch);
                CallDecision::RunWith(edited)
            }
        }
    }
}

/// Checks whether a name of a rule is that of a tool.
fn is_named(name: &Text, tool: &str) -> bool {
    match name.strip_suffix('*') {
        Some(beginning) => tool.starts_with(beginning),
        None => tool == name.as_str(),
    }
}

/// Checks whether a pointer begins with a parameter of a tool. A schema without listed parameters allows any.
fn has_parameter(tool: &ToolDefinition, pointer: &str) -> bool {
    let Some(parameters) = tool.parameters.get("properties").and_then(Value::as_object) else { return true };
    let name = pointer.split('/').nth(1).unwrap_or_default();
    name.is_empty() || parameters.contains_key(&name.replace("~1", "/").replace("~0", "~"))
}

/// Checks whether two values are equal as JSON, so that `10` equals `10.0`.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) if one.is_f64() || other.is_f64() => {
            one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_same =
                |(name, one): (&String, _)| other.get(name).is_some_and(|other| is_equal(one, other));
            one.len() == other.len() && one.iter().all(is_same)
        }
        _ => one == other,
    }
}

/// Applies a merge patch.
fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(serde_json::Map::new());
    }
    let Value::Object(members) = value else { return };
    for (name, patch) in patch {
        match patch {
            Value::Null => {
                members.remove(name);
            }
            patch => merge(members.entry(name.clone()).or_insert(Value::Null), patch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn first_matching_rule_decides() {
        let at_most = |number| ArgumentTest::AtMost { pointer: "/amount".into(), number };
        let home = ArgumentTest::StartsWith { pointer: "/path".into(), text: "/home/".into() };
        let one = ArgumentTest::Equals { pointer: "".into(), value: json!({"of": [1]}) };
        let dry = ArgumentTest::Equals { pointer: "/dry".into(), value: json!(true) };
        let policy = ToolPolicy {
            rules: vec![
                ToolRule {
                    when: vec![at_most(10.0)],
                    ..ToolRule::new(["pay", "refund"], PolicyAction::Allow)
                },
                ToolRule::new(["pay"], PolicyAction::Ask),
                ToolRule { when: vec![one], ..ToolRule::new(["count"], PolicyAction::Ask) },
                ToolRule { when: vec![home], ..ToolRule::new(["file_*"], PolicyAction::Allow) },
                ToolRule { when: vec![dry], ..ToolRule::new(["file_delete"], PolicyAction::Allow) },
                ToolRule::new(["file_*"], PolicyAction::Edit(json!({"dry": true, "force": null}))),
            ],
            otherwise: PolicyAction::Deny("no".into()),
        };
        let edited = CallDecision::RunWith(json!({"path": "/etc", "dry": true}));
        for (tool, arguments, decision) in [
            ("pay", json!({"amount": 10}), CallDecision::Run),
            ("pay", json!({"amount": 10.0}), CallDecision::Run),
            ("count", json!({"of": [1.0]}), CallDecision::Ask),
            ("pay", json!({"amount": 11}), CallDecision::Ask),
            ("pay", json!({"amount": "10"}), CallDecision::Ask),
            ("refund", json!({"amount": 11}), CallDecision::Deny("no".into())),
            ("file_read", json!({"path": "/home/a"}), CallDecision::Run),
            ("file_delete", json!({"path": "/etc", "dry": true}), CallDecision::Run),
            ("file_delete", json!({"path": "/etc", "force": 1}), edited),
            ("files", json!({}), CallDecision::Deny("no".into())),
        ] {
            assert_eq!(policy.decide(tool, &arguments), decision, "{tool} {arguments}");
        }
        assert_eq!(ToolPolicy::default().decide("any", &json!({})), CallDecision::Run);
    }

    /// The examples of RFC 7396, appendix A, that have objects.
    #[test]
    fn edits_are_merge_patches() {
        for (before, patch, after) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
        ] {
            let mut value = before.clone();
            merge(&mut value, &patch);
            assert_eq!(value, after, "{before} {patch}");
        }
    }

    #[test]
    fn policy_that_cannot_be_meant_is_refused() {
        for (rules, problem) in [
            (json!([{"tools": ["*_order"], "then": "ask"}]), "`*_order`"),
            (json!([{"tools": ["a**"], "then": "ask"}]), "`a**`"),
            (json!([{"tools": [], "then": "ask"}]), "no tools"),
            (
                json!([{"tools": ["pay"], "when": [{"at_most": {"pointer": "cents", "number": 1}}], "then": "ask"}]),
                "`cents`",
            ),
            (json!([{"tools": ["pay"], "then": {"edit": [1]}}]), "an edit"),
        ] {
            let policy: ToolPolicy = serde_json::from_value(json!({"rules": rules})).unwrap();
            let error = policy.validate().unwrap_err();
            assert_eq!(error.kind(), advisor_core::ErrorKind::Configuration);
            assert!(error.to_string().contains(problem), "{error}");
            assert!(crate::ToolCallAdvisor::builder().policy(policy).build().is_err());
        }
        let all = json!({"rules": [{"tools": ["*"], "when": [{"equals": {"pointer": "", "value": {}}}], "then": "ask"}]});
        assert!(serde_json::from_value::<ToolPolicy>(all).unwrap().validate().is_ok());
    }

    #[test]
    fn policy_with_a_typing_error_is_refused() {
        for wrong in [
            json!({"rule": []}),
            json!({"rules": [{"tools": ["a"], "then": "allow", "where": []}]}),
            json!({"rules": [{"tools": ["a"], "then": "alow"}]}),
            json!({"rules": [{"tools": ["a"], "when": [{"equals": {"pointer": "/a"}}], "then": "ask"}]}),
        ] {
            assert!(serde_json::from_value::<ToolPolicy>(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn misspelled_names_and_pointers_are_found() {
        let cents = json!({"type": "object", "properties": {"cents": {}, "a/b": {}}});
        let tool = |name: &str, schema: Value| {
            crate::FnTool::new(ToolDefinition::new(name, "A tool.", schema), |_: Value| async { Ok("done") })
        };
        let tools = ToolSet::new().with(tool("pay", cents)).with(tool("any", Value::Null));
        let policy = |name: &str, pointer: &str| {
            let test = json!({"equals": {"pointer": pointer, "value": 1}});
            let policy = json!({"rules": [{"tools": [name], "when": [test], "then": "ask"}]});
            serde_json::from_value::<ToolPolicy>(policy)
                .unwrap()
                .validate_for(&tools)
                .map_err(|error| error.to_string())
        };
        for (name, pointer) in
            [("pay", "/cents"), ("pa*", "/a~1b/0"), ("*", "/cents"), ("any", "/cent"), ("pay", "")]
        {
            assert_eq!(policy(name, pointer), Ok(()), "{name} {pointer}");
        }
        for (name, pointer, says) in
            [("pya", "/cents", "`pya`; the tools are pay, any"), ("pay", "/cent", "`/cent`")]
        {
            assert!(policy(name, pointer).unwrap_err().contains(says), "{name} {pointer}");
        }
    }
}
