//! A model that is told of its tools in words, behind a compatible server.

use advisor_chain::text_tool_calls::TextTools;
use advisor_tests::prelude::*;

use super::{Item, Rule, Sent, Target, chat};
use crate::history::story::{
    ANSWER, CALLS, CAT, DEMAND, DRAWING, DRAWN, LOCKED, NEXT, PICTURE, QUESTION, REFUSAL, SYSTEM, TEXT,
    definitions,
};

pub(crate) const XML: Target = Target {
    name: "calls in text, as XML",
    in_text: Some(TextFormat::Xml),
    rules: &[RULES, chat::RULES, chat::NO_REASONING],
    ..chat::COMPATIBLE
};

pub(crate) const JSON: Target =
    Target { name: "calls in text, as JSON", in_text: Some(TextFormat::Json), ..XML };

const RULES: &[Rule] = &[
    Rule {
        name: "the API knows no tool, and the system's text describes all",
        check: |sent| {
            assert!(sent.body.get("tools").is_none() && sent.body.get("tool_choice").is_none());
            let first = sent.items.first().expect("an item");
            assert_eq!((first.role, first.text.contains(SYSTEM)), (Role::System, true));
            assert!(definitions().iter().all(|tool| first.text.contains(&format!("## {}", tool.name))));
        },
    },
    Rule { name: "roles take turns; results are of the user, in one message", check: turns },
    Rule {
        name: "calls are text in the format, results too, in the order of the calls",
        check: all_in_words,
    },
    Rule {
        name: "pictures of the user and of results are sent",
        check: |sent| {
            let pictures: Vec<_> = sent.of(Role::User).map(|item| item.pictures.clone()).collect();
            assert_eq!(json!(pictures), json!([[PICTURE], [], [DRAWING], [], []]));
        },
    },
    Rule {
        name: "signatures and encrypted content stay away",
        check: |sent| {
            let body = sent.body.to_string();
            assert!(sent.origin.secrets.iter().all(|secret| !body.contains(secret)), "{:#}", sent.body);
        },
    },
];

fn turns(sent: &Sent<'_>) {
    let roles: Vec<Role> = sent.items.iter().map(|item| item.role).collect();
    let turn = [Role::User, Role::Assistant];
    let expected: Vec<Role> = [Role::System].into_iter().chain(turn.into_iter().cycle().take(9)).collect();
    assert_eq!(roles, expected, "{:#}", sent.body);
}

fn all_in_words(sent: &Sent<'_>) {
    let (tools, format) = (TextTools::new(&definitions()), sent.target.in_text.expect("a format"));
    let call = |round: usize, place: usize| tools.call(format, CALLS[round][place].0, CALLS[round][place].1);
    let (look, now, draw, open) = (call(0, 0), call(0, 1), call(1, 0), call(1, 1));
    let expected: [&[&str]; 9] = [
        &[QUESTION],
        &[TEXT, &look, &now],
        &[CAT, "hour"],
        &[&draw, &open],
        &[DRAWN, LOCKED],
        &[ANSWER],
        &[DEMAND],
        &[REFUSAL],
        &[NEXT],
    ];
    for (item, texts) in sent.items.iter().skip(1).zip(expected) {
        assert!(in_order(item, texts), "{texts:?} are not in {item:#?}");
    }
}

fn in_order(item: &Item, texts: &[&str]) -> bool {
    let mut rest = item.text.as_str();
    texts.iter().all(|text| {
        let found = rest.split_once(text);
        rest = found.map_or(rest, |(_, after)| after);
        found.is_some()
    })
}
