//! The rules of every API that has an interface for tools.

use advisor_tests::prelude::*;

use super::{Item, Rule, Sent};
use crate::history::story::{CALLS, PICTURE, SAID, SYSTEM};

pub(crate) const RULES: &[Rule] = &[
    Rule { name: "everything that was said is sent, in order", check: everything_in_order },
    Rule { name: "the system's text comes first, once", check: system_first },
    Rule { name: "each call has one result, in the order of the calls", check: results_follow_calls },
    Rule { name: "no two calls have the same id, and the server accepts all ids", check: ids_fit },
    Rule { name: "a call has the name under which the request describes the tool", check: names_fit },
    Rule { name: "arguments are an object, and none are {}", check: arguments_are_objects },
    Rule { name: "the user's picture is sent", check: picture_of_the_user },
    Rule { name: "no message is empty", check: nothing_empty },
    Rule { name: "signatures and encrypted content go to their server only", check: secrets_stay_home },
    Rule { name: "no other field of an answer goes to another server", check: no_fields_of_others },
];

fn everything_in_order(sent: &Sent<'_>) {
    let said: Vec<&Item> = sent.items.iter().filter(|item| item.role != Role::System).collect();
    let roles: Vec<Role> = said.iter().map(|item| item.role).collect();
    assert_eq!(roles, SAID.map(|(role, _)| role), "{:#}", sent.body);
    for (item, (role, text)) in said.into_iter().zip(SAID) {
        // A result may have a note beside its text; nothing is added to what the model or the user said.
        let is_there = if role == Role::Tool { item.text.contains(text) } else { item.text.trim() == text };
        assert!(is_there, "{text} is not {item:#?}");
    }
}

fn system_first(sent: &Sent<'_>) {
    let first = sent.items.first().expect("an item");
    assert_eq!((first.role, first.text.as_str()), (Role::System, SYSTEM));
    assert_eq!(sent.of(Role::System).count(), 1);
}

fn results_follow_calls(sent: &Sent<'_>) {
    let mut waiting = Vec::new();
    for item in &sent.items {
        match &item.result_of {
            Some(result) => {
                assert!(!waiting.is_empty(), "a result without a call: {item:#?}");
                let call: super::Call = waiting.remove(0);
                assert_eq!(result.id, call.id);
                assert!(result.name.as_ref().is_none_or(|name| *name == call.name), "{result:?} of {call:?}");
                assert!(result.id.is_some() || result.name.is_some(), "{result:?} names no call");
            }
            None => assert!(waiting.is_empty(), "calls without results: {waiting:?}"),
        }
        waiting.extend(item.calls.iter().cloned());
    }
    assert!(waiting.is_empty(), "calls without results: {waiting:?}");
}

fn ids_fit(sent: &Sent<'_>) {
    let ids: Vec<&String> =
        sent.items.iter().flat_map(|item| &item.calls).filter_map(|call| call.id.as_ref()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    assert!(ids.iter().all(|id| (sent.target.accepts_id)(id)), "{ids:?}");
}

fn names_fit(sent: &Sent<'_>) {
    let mut described = BTreeSet::new();
    names_in(&sent.body["tools"], &mut described);
    for (call, (name, _)) in sent.items.iter().flat_map(|item| &item.calls).zip(CALLS.concat()) {
        assert!((sent.target.accepts_name)(&call.name), "{call:?}");
        assert!(described.contains(&call.name), "{call:?} of {described:?}");
        assert!(call.name == name || call.name == name.replace('.', "_"), "{call:?} of {name}");
    }
}

/// Collects the names of described tools, whatever the API.
fn names_in(tools: &Value, names: &mut BTreeSet<String>) {
    match tools {
        Value::Array(tools) => tools.iter().for_each(|tool| names_in(tool, names)),
        Value::Object(fields) => match fields.get("name") {
            Some(name) => drop(names.insert(name.as_str().expect("a name").to_owned())),
            None => fields.values().for_each(|tool| names_in(tool, names)),
        },
        _ => {}
    }
}

fn arguments_are_objects(sent: &Sent<'_>) {
    for (answer, calls) in sent.of(Role::Assistant).filter(|answer| !answer.calls.is_empty()).zip(CALLS) {
        let arguments: Vec<_> = answer.calls.iter().map(|call| call.arguments.clone()).collect();
        let expected = calls.map(|(_, arguments)| serde_json::from_str::<Value>(arguments).expect("JSON"));
        assert_eq!(json!(arguments), json!(expected));
    }
}

fn picture_of_the_user(sent: &Sent<'_>) {
    let pictures: Vec<_> = sent.of(Role::User).map(|item| item.pictures.clone()).collect();
    assert_eq!(json!(pictures), json!([[PICTURE], [], []]));
}

fn nothing_empty(sent: &Sent<'_>) {
    for item in &sent.items {
        let is_empty = item.text.trim().is_empty() && item.calls.is_empty() && item.pictures.is_empty();
        assert!(!is_empty, "{item:#?}");
    }
}

fn secrets_stay_home(sent: &Sent<'_>) {
    let body = sent.body.to_string();
    for secret in sent.origin.secrets {
        assert_eq!(body.contains(secret), sent.is_at_home(), "{secret}: {:#}", sent.body);
    }
}

/// The keys of data that only the server of an origin knows.
fn no_fields_of_others(sent: &Sent<'_>) {
    let body = sent.body.to_string();
    for key in ["extra_content", "reasoning_details", "encrypted_content", "redacted_thinking"] {
        let has_key = body.contains(&format!("\"{key}\":"));
        assert!(sent.is_at_home() || !has_key, "{key}: {:#}", sent.body);
    }
}
