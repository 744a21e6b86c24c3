//! Policies over blocks.

use advisor_chain::stream_policy::{BlockPolicy, Guard, LetterCase, PendingBlock, ReplaceText, Verdict};

use super::{Base, Row, Touch};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("BlockPolicy", judged).in_a(Base::Text, ", beside text").touching(Touch::Works(1_200)),
        Row::new("BlockPolicy", judged)
            .in_a(Base::Arguments, ", arguments of a call")
            .touching(Touch::Works(1_400)),
        Row::new("ReplaceText", || ReplaceText::new([("however", "but"), ("Mallory", "[name]")]))
            .in_a(Base::Text, ", two words")
            .touching(Touch::Works(2_500)),
        Row::new("InputGuard", || Guard::for_words(["password"], LetterCase::Ignore).on_input())
            .in_a(Base::Text, ", one word"),
        Row::new("OutputGuard", || Guard::for_words(["Mallory"], LetterCase::Exact).on_output())
            .in_a(Base::Text, ", one word")
            .touching(Touch::Works(2_500)),
    ]
}

fn judged() -> BlockPolicy {
    BlockPolicy::new(|pending: PendingBlock| async move {
        let deletes = pending.call().is_some_and(|call| call.name == "delete");
        Ok(if deletes { Verdict::deny("") } else { Verdict::Allow })
    })
}
