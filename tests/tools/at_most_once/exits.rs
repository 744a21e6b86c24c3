//! Tests of every way in which a turn ends.

use advisor_tests::prelude::*;

use crate::at_most_once::world::{PLACES, World, starts_in, words};

/// For every end of a turn, the log has the starts before the results, one for each call that ran. Both places
/// of memory write the same entries.
#[tokio::test]
async fn law_t5_m4_every_exit_writes_equal_starts_in_both_places() {
    for (what, answers, limits, expected) in exits() {
        for place in PLACES {
            let world = World { limits: limits.clone(), ..World::new(place) };
            let process = world.process(answers());
            let _ = process.turn("go").call().await;
            assert_eq!(process.model.calls(), answers().len(), "{what}");
            assert_eq!(words(&world.log().await), expected, "{what}, {place:?}");
            let starts = world.starts.lock().unwrap().clone();
            assert!(starts.values().all(|times| *times == 1), "{what}");
            let announced: Vec<_> =
                starts_in(&world.log().await).into_iter().map(|start| start.key).collect();
            assert!(starts.keys().eq(&announced), "{what}: {starts:?} {announced:?}");
        }
    }
}

/// The name of an exit, the answers of the model, the limits of the loop, and the log in words.
type Exit = (&'static str, fn() -> Vec<Answer>, ToolLimits, &'static str);

fn exits() -> Vec<Exit> {
    let limited = ToolLimits::default().with_calls(1);
    let tell = limited.clone().with_on_call_limit(OnCallLimit::TellModel);
    let free = ToolLimits::default;
    vec![
        ("an answer", || vec![charge(), done()], free(), "u a(1,2) started(1) =1 !2 a ."),
        (
            "return-direct",
            || vec![Answer::from_calls([("1", "direct", "{}")])],
            free(),
            "u a(1) started(1) =1 a .",
        ),
        (
            "a tool that fails",
            || vec![Answer::from_calls([("1", "fails", "{}")]), done()],
            free(),
            "u a(1) started(1) !1 a .",
        ),
        ("a limit on calls", || vec![two()], limited, "u a(1,2) started(1) =1 !2 a ."),
        ("a denial", || vec![two(), done()], tell, "u a(1,2) started(1) =1 !2 a ."),
        ("the last round", || vec![two()], free().with_rounds(1), "u a(1,2) !1 !2 a ."),
        (
            "an answer that was cut",
            || vec![Answer::new().call("1", "charge", "{}").finish(FinishReason::Length)],
            free(),
            "u a(1) !1 a .",
        ),
        ("an error", || vec![two(), broken()], free(), "u a(1,2) started(1) started(2) =1 =2 ."),
        ("no calls", || vec![done()], free(), "u a ."),
    ]
}

/// The second one has bad arguments.
fn charge() -> Answer {
    Answer::from_calls([("1", "charge", "{}"), ("2", "charge", r#"{"n":"x"}"#)])
}

fn two() -> Answer {
    Answer::from_calls([("1", "charge", "{}"), ("2", "charge", "{}")])
}

fn done() -> Answer {
    Answer::from_text("Done.")
}

fn broken() -> Answer {
    Answer::new().error(Error::new(ErrorKind::Connection, "broken"))
}
