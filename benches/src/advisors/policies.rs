//! Policies over blocks.

use advisor_chain::messages::BlockObserver;
use advisor_chain::stream_policy::{
    BlockPolicy, Guard, LetterCase, ObserveBlocks, PendingBlock, ReplaceText, Verdict,
};

use super::{Base, Row, Touch};

const README: &str = "crates/stream-policy/README.md";
const GUARDS: &str = "crates/stream-policy/README.md#guards";

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("BlockPolicy", README, judged)
            .in_a(Base::Text, ", beside text")
            .touching(Touch::Works(1_200))
            .waiting("its judge; holds back each call until it is judged, and no text"),
        Row::new("BlockPolicy", README, judged)
            .in_a(Base::Arguments, ", arguments of a call")
            .touching(Touch::Works(1_400))
            .waiting("its judge; holds back the whole call"),
        Row::new("ReplaceText", README, || ReplaceText::new([("however", "but"), ("Mallory", "[name]")]))
            .in_a(Base::Text, ", two words")
            .touching(Touch::Works(2_500))
            .waiting("holds back text that may begin a match"),
        Row::new("ObserveBlocks", README, || ObserveBlocks::new(|_| Seen)).touching(Touch::Looks),
        Row::new("InputGuard", GUARDS, || Guard::for_words(["password"], LetterCase::Ignore).on_input())
            .in_a(Base::Text, ", one word"),
        Row::new("OutputGuard", GUARDS, || Guard::for_words(["Mallory"], LetterCase::Exact).on_output())
            .in_a(Base::Text, ", one word")
            .touching(Touch::Works(2_500))
            .waiting("holds back text that may begin a match"),
    ]
}

fn judged() -> BlockPolicy {
    BlockPolicy::new(|pending: PendingBlock| async move {
        let deletes = pending.call().is_some_and(|call| call.name == "delete");
        Ok(if deletes { Verdict::deny("") } else { Verdict::Allow })
    })
}

/// An observer without callbacks.
struct Seen;

impl BlockObserver for Seen {}
