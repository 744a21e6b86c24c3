//! Any answer, in any pieces, keeps the rules of every protocol.

use advisor_core::{Citation, Delta, DeltaKind, FinishReason, Media, ToolCallDelta};
use advisor_sse::Frames;
use advisor_testkit::Answer;
use proptest::prelude::*;

use crate::table::{encode, protocols};
use crate::turns::play;

fn delta() -> impl Strategy<Value = Delta> {
    let text =
        prop_oneof!["[a-z\\n\\r\":{}<>\u{2028}é]{0,6}", Just("\n\n".to_owned()), Just("data: x".to_owned())];
    let arguments =
        prop_oneof![Just(""), Just("{"), Just("}"), Just("{}"), Just("\"a\":1"), Just("nonsense")];
    prop_oneof![
        4 => text.clone().prop_map(Delta::text),
        2 => text.clone().prop_map(Delta::reasoning),
        1 => text.prop_map(|text| DeltaKind::Refusal(text.into()).into()),
        2 => (0..3_i64, prop_oneof![Just("weather"), Just("ask_user"), Just("broken"), Just("wether")])
            .prop_map(|(index, name)| Delta::tool_call(ToolCallDelta::start(index, format!("c{index}"), name))),
        3 => (0..3_i64, arguments)
            .prop_map(|(index, arguments)| Delta::tool_call(ToolCallDelta::arguments(index, arguments))),
        1 => (0..3_u8, "[a-z()]{0,3}").prop_map(|(kind, name)| match kind {
            0 => Delta::media(Media::from_url("image/png", name)),
            _ => {
                let mut citation = Citation::default();
                citation.url = (kind == 1).then(|| name.into());
                DeltaKind::Citation(Box::new(citation)).into()
            }
        }),
        1 => Just(Delta::text("other")),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    let reasons = [
        None,
        Some(FinishReason::Stop),
        Some(FinishReason::ToolCalls),
        Some(FinishReason::Length),
        Some(FinishReason::ContentFilter),
        Some(FinishReason::Refusal),
        Some(FinishReason::Interrupted),
    ];
    (proptest::collection::vec(delta(), 0..12), proptest::sample::select(reasons.to_vec()), any::<bool>())
        .prop_map(|(deltas, reason, is_whole)| {
            let answer = deltas.into_iter().fold(Answer::new(), Answer::delta);
            let answer = reason.into_iter().fold(answer, Answer::finish);
            if is_whole { answer.done() } else { answer }
        })
}

proptest! {
    #[test]
    fn any_turn_keeps_the_rules_of_every_protocol(answers in proptest::collection::vec(answer(), 1..4)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let turn = runtime.block_on(play(answers));
        for (protocol, encoder, check) in protocols() {
            let stream = encode(encoder(), Frames::new(), &turn);
            let checked = check(&stream, &turn);
            prop_assert_eq!(checked, Ok(()), "{}:\n{}", protocol, stream);
        }
    }
}
