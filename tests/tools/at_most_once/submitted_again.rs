//! Tests of an interrupted turn that continues under its id.

use advisor_chain::tools::OUTCOME_UNKNOWN;
use advisor_tests::prelude::*;

use crate::at_most_once::world::{World, key, poll, polls_of_a_turn, two_rounds};

/// An interrupted turn continues when it is submitted again under its id. Every call of every tool has a
/// separate key, so its new calls differ from the earlier ones. Calls that had started need verification.
#[tokio::test]
async fn law_t5_k4_resubmitted_turn_starts_no_call_twice() {
    let mut verified = 0;
    for place in PLACES {
        let longest = polls_of_a_turn(&World::new(place), two_rounds).await;
        for crashes in [false, true] {
            for (first, second) in (0..=longest).flat_map(|first| [0, 5, 9, 12, 14, 40].map(|n| (first, n))) {
                let what = format!("{place:?}, crash {crashes}, {first} and {second} polls");
                let world = World::new(place);
                let mut process = world.process(two_rounds());
                for polls in [first, second, 200] {
                    let id = TurnId::new("once").unwrap();
                    let turn = process.client.prompt().user("go").conversation("c").turn(id).stream();
                    let ended = poll(turn, polls).await;
                    assert!(ended || polls < 200, "{what}: it comes to its end");
                    world.check_starts(&what).await;
                    process = match crashes {
                        false => world.process_of(process.memory.clone(), two_rounds()),
                        true => world.process(two_rounds()),
                    };
                }
                let log = world.log().await;
                assert_eq!(log.iter().filter(|entry| is_input(entry)).count(), 1, "{what}");
                verified += check_log(&what, &log);
                let messages: Vec<_> =
                    process.memory.transcript(&key()).await.unwrap().iter().cloned().collect();
                assert_eq!(validate_transcript(&messages), [], "{what}");
                assert_eq!(messages.last().map(Message::text).as_deref(), Some("Done."), "{what}");
            }
        }
    }
    assert!(verified > 50, "{verified} calls are to be verified");
}

fn is_input(entry: &Entry) -> bool {
    entry.kind.as_message().is_some_and(|message| message.role() == Role::User)
}

/// Fails unless calls that were cut off are answered by whether their start is in the log. How many were started.
fn check_log(what: &str, log: &[Entry]) -> usize {
    let (mut verified, mut started) = (0, BTreeSet::new());
    for entry in log {
        match &entry.kind {
            EntryKind::CallStarted(start) => _ = started.insert(start.call_id.clone()),
            EntryKind::Message(message) if message.tool_calls().next().is_some() => started.clear(),
            EntryKind::Message(message) => match message.tool_result().filter(|result| result.is_error) {
                Some(result) if started.contains(&result.call_id) => {
                    verified += 1;
                    assert_eq!(result.text(), VERIFY_BEFORE_RETRYING, "{what}");
                }
                Some(result) => assert_eq!(result.text(), OUTCOME_UNKNOWN, "{what}"),
                None => {}
            },
            _ => {}
        }
    }
    verified
}
