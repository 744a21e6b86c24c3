//! Tests of `answer::identifiers`.

use super::*;
use crate::names::NameRule;

const KEY: &str = "canary~of.no-vendor";

fn knowing_a_secret() -> Identifiers {
    Identifiers::new(Redaction::new([KEY.into()].into_iter()))
}

/// Returns the calls as shown, as name and id.
fn called(identifiers: &mut Identifiers, calls: &[(&str, &str)]) -> Vec<(String, String)> {
    let shown = calls.iter().map(|(name, id)| {
        let mut fragment = ToolCallDelta::start(0, *id, *name);
        identifiers.show(&mut fragment);
        let word = |text: Option<Text>| text.unwrap_or_default().to_string();
        (word(fragment.name), word(fragment.call_id))
    });
    shown.collect()
}

#[test]
fn law_t6_redacted_ids_stay_distinct_and_stable() {
    let [key, upper, cut] = [KEY, &KEY.to_ascii_uppercase(), &KEY[..15]].map(str::to_owned);
    let long = |end: &str| format!("{KEY}{}{end}", "x".repeat(20 << 10));
    let (one, two) = (long("1"), long("2"));
    let ids = [
        &key, &upper, &cut, "sk-0123456789abcdef", "sk-0123456789abcdeg", "[secret]", "[secret]-2", "call_1",
        "c-[secret]", &one, &two,
    ];
    let calls = ids.map(|id| ("f", id));
    let mut identifiers = knowing_a_secret();
    let first = called(&mut identifiers, &calls);
    let shown: HashSet<_> = first.iter().map(|(_, id)| id).collect();
    assert_eq!(shown.len(), ids.len(), "{first:?}");
    assert_eq!((first[0].1.as_str(), first[7].1.as_str()), ("[secret]", "call_1"));
    // Also when they are repeated, and in another answer.
    assert_eq!(called(&mut identifiers, &calls[..9]), first[..9]);
    assert_eq!(called(&mut knowing_a_secret(), &calls), first);
    // An id that is not kept has a number that no other id gets.
    let endless = format!("sk-{}", "0123456789".repeat(2 << 10));
    let calls = [&*endless, "[secret]-2049", "[secret]-2050", "[secret]", &endless].map(|id| ("f", id));
    let shown = called(&mut knowing_a_secret(), &calls);
    let different: HashSet<_> = shown.iter().collect();
    assert_eq!((different.len(), shown[0].1.as_str()), (calls.len(), "[secret]-2049"), "{shown:?}");
    let told = format!("{first:?} {identifiers:?}").to_ascii_lowercase();
    assert!(!told.contains(&KEY[..12]) && !told.contains("0123456789"), "{told}");
}

#[test]
fn law_r3_names_and_ids_hide_apparent_secrets() {
    let upper = KEY.to_ascii_uppercase();
    for word in [KEY, &upper, &KEY[2..16], "sk-proj-0123456789abcdef"] {
        let shown = called(&mut knowing_a_secret(), &[(word, word)]);
        assert!(shown[0].0.contains("[secret]") && shown[0].1.contains("[secret]"), "{shown:?}");
        assert!(!format!("{shown:?}").contains(word), "{shown:?}");
    }
}

/// A caller may give a tool any name: a call of it is found.
#[test]
fn a_tool_of_the_request_keeps_its_name() {
    let odd = ["sk-learn-something-else", KEY, "fw_update", "docs.search-0123456789"];
    let chosen = "sk-learn-another-thing";
    let tools: Vec<Text> = odd.iter().chain([&chosen]).map(|name| Text::from(*name)).collect();
    let names = ToolNames::new(NameRule::UP_TO_64, &odd, tools.iter()).with_offered(tools.iter());
    let calls = odd.map(|name| (name, "c"));
    let mut identifiers = knowing_a_secret();
    identifiers.set_tools(Arc::new(names));
    let names = called(&mut identifiers, &calls).into_iter().map(|(name, _)| name);
    assert_eq!(names.collect::<Vec<_>>(), odd);
    assert_eq!(called(&mut identifiers, &[(chosen, "c")])[0].0, chosen);
    assert_eq!(called(&mut identifiers, &[("sk-learn-something-new-0123456789", "c")])[0].0, "[secret]");
}

#[test]
fn empty_and_absent_words_stay() {
    let mut fragment = ToolCallDelta::start(0, "", "");
    knowing_a_secret().show(&mut fragment);
    assert_eq!(fragment, ToolCallDelta::start(0, "", ""));
    let mut fragment = ToolCallDelta::arguments(0, KEY);
    knowing_a_secret().show(&mut fragment);
    assert_eq!(fragment, ToolCallDelta::arguments(0, KEY), "arguments are content");
}

/// Few ids are kept, however many a server sends, and none equals another.
#[test]
fn law_r1_kept_ids_are_bounded() {
    let mut identifiers = Identifiers::new(Redaction::default());
    let mut ids = HashSet::new();
    for number in 0..3000 {
        let padding = "y".repeat(number % 3 * 1000);
        let [(_, id)] =
            &called(&mut identifiers, &[("f", &format!("sk-0123456789abcdef{number}{padding}"))])[..]
        else {
            panic!("a call")
        };
        assert!(ids.insert(id.clone()), "{number}");
    }
    let kept = format!("{identifiers:?}");
    assert!(kept.contains("hidden: 1024") && identifiers.forgets(), "{kept}");
}
