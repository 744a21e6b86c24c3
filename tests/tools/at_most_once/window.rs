//! Tests that stored starts take no room in a window.

use advisor_tests::prelude::*;

use crate::at_most_once::world::{World, fine};

/// A window by messages holds the same conversation, whether or not starts stand among its messages.
#[tokio::test]
async fn starts_take_no_room_in_a_window() {
    for window in (0..30)
        .map(Window::Messages)
        .chain((0..5).map(Window::Turns))
        .chain((0..200).step_by(9).map(Window::Tokens))
    {
        let mut sent = Vec::new();
        for tool in ["silent", "charge"] {
            let world = World::new(Phase::Round);
            let memory = ChatMemoryAdvisor::new(world.store.clone()).with_window(window);
            for turn in 0..4 {
                // Names of one length take as many tokens.
                let calls = || Answer::from_calls([("1", tool, "{}"), ("2", tool, "{}")]);
                let answers =
                    std::iter::repeat_with(calls).take(turn).chain([Answer::from_text("Done.")]).collect();
                world.process_of(memory.clone(), answers).turn("go").call().await.unwrap();
            }
            let next = world.process_of(memory, fine()).next("next").await;
            sent.push(next.iter().map(|message| (message.role(), message.text())).collect::<Vec<_>>());
        }
        assert_eq!(sent[0], sent[1], "{window:?}");
    }
}
