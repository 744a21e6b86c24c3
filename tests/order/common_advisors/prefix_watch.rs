//! `PrefixWatch`: names what changed at a prompt's beginning; a growing conversation changes nothing there.

use advisor_chain::Prompt;
use advisor_chain::advisors::{PrefixChange, PrefixWatch};
use advisor_tests::log::Log;
use advisor_tests::prelude::*;

use crate::common_advisors::support::{Setting, looks, says, tool};

type Changes = Arc<Mutex<Vec<PrefixChange>>>;

fn watch() -> (PrefixWatch, Changes) {
    let changes = Changes::default();
    let noted = Arc::clone(&changes);
    (PrefixWatch::default().with_on_change(move |change| noted.lock().unwrap().push(change.clone())), changes)
}

/// What the changes since the last look were: system text, tools, message.
fn seen(changes: &Changes) -> Vec<(bool, bool, Option<usize>)> {
    let changes = std::mem::take(&mut *changes.lock().unwrap());
    changes.iter().map(|change| (change.system, change.tools, change.message)).collect()
}

fn hello() -> ScriptedModel {
    ScriptedModel::from_fn(|_| says("Hello.", 10))
}

async fn ask(prompt: Prompt) {
    prompt.call().await.unwrap();
}

/// Memory sends the same beginning again, wherever it is.
#[tokio::test]
async fn growing_conversation_is_no_change() {
    for remembers in PLACES {
        let model = ScriptedModel::new([looks(10), says("Done.", 10), looks(10), says("Again.", 10)]);
        let mut setting = Setting::new(&model, remembers, OnLimit::EndTurn);
        let (watch, changes) = watch();
        setting.client = setting.client.advisor(watch);
        let client = setting.client.clone().build().unwrap();
        for text in ["go", "go on"] {
            ask(client.prompt().system("Be brief.").user(text).conversation("c")).await;
        }
        assert_eq!(model.prompts()[3].messages.len(), 8, "system text, two questions, answers and results");
        assert_eq!(seen(&changes), [], "{remembers}");
    }
}

#[tokio::test]
async fn changed_parts_are_named() {
    let (watch, changes) = watch();
    let client = ChatClient::builder(hello()).advisor(watch).build().unwrap();
    let ask = async |system: &str, messages: &[&str], tools: &[&'static str]| {
        let mut prompt = client.prompt().system(system).conversation("c");
        for (place, text) in messages.iter().enumerate() {
            let user = place % 2 == 0;
            prompt = prompt.messages([if user { Message::user(*text) } else { Message::assistant(*text) }]);
        }
        for name in tools {
            prompt = prompt.tool(tool(name, |_| async { Ok(String::new()) }));
        }
        prompt.call().await.unwrap();
        seen(&changes)
    };
    assert_eq!(ask("s", &["a", "b", "c"], &[]).await, [], "the first call");
    assert_eq!(ask("s", &["a", "b", "c"], &[]).await, [], "the same again");
    assert_eq!(ask("s", &["a", "b", "x"], &[]).await, [], "another last message");
    assert_eq!(ask("s", &["a", "b", "y", "d", "e"], &[]).await, [], "and further ones");
    assert_eq!(ask("s2", &["a", "b", "y", "d", "e"], &[]).await, [(true, false, None)]);
    assert_eq!(ask("s2", &["a", "b", "y", "d", "e"], &["one"]).await, [(false, true, None)]);
    assert_eq!(ask("s2", &["a", "b", "y", "d", "e"], &["one", "two"]).await, [(false, true, None)]);
    assert_eq!(ask("s2", &["a", "b", "y", "d", "e"], &["two", "one"]).await, [(false, true, None)]);
    assert_eq!(ask("s2", &["a", "B", "y", "d", "e"], &["two", "one"]).await, [(false, false, Some(1))]);
    assert_eq!(ask("s2", &["y", "d", "e"], &["two", "one"]).await, [(false, false, Some(0))], "moved");
    assert_eq!(ask("s2", &["y"], &["two", "one"]).await, [(false, false, Some(1))], "missing");
    assert_eq!(ask("s", &["z"], &[]).await, [(true, true, None)]);
}

#[tokio::test]
async fn conversations_and_turns_are_compared_with_themselves() {
    let (watch, changes) = watch();
    let client = ChatClient::builder(hello()).advisor(watch).build().unwrap();
    let ask = async |conversation: Option<&str>, system: &str| {
        let prompt = client.prompt().system(system).user("Hi");
        ask(match conversation {
            Some(conversation) => prompt.conversation(conversation),
            None => prompt,
        })
        .await;
        seen(&changes).len()
    };
    assert_eq!((ask(Some("a"), "1").await, ask(Some("b"), "2").await), (0, 0));
    assert_eq!((ask(Some("a"), "1").await, ask(Some("b"), "3").await), (0, 1));
    assert_eq!((ask(None, "4").await, ask(None, "5").await), (0, 0), "two turns");
    assert_eq!(ask(Some("a"), "6").await, 1);
}

#[tokio::test]
async fn law_r3_warning_has_no_content() {
    let (log, _logging) = Log::start();
    let client = ChatClient::builder(hello()).advisor(PrefixWatch::default()).build().unwrap();
    for text in ["canary", "other canary"] {
        let messages = [Message::user(text), Message::assistant("x"), Message::user("y")];
        ask(client.prompt().system(text).messages(messages).conversation("c1")).await;
    }
    let lines = log.take();
    assert_eq!(lines.matches("WARN").count(), 1, "{lines}");
    for part in ["default/c1", "system=true", "tools=false", "position=0"] {
        assert!(lines.contains(part), "{part}: {lines}");
    }
    assert!(!lines.contains("canary"), "{lines}");
}
