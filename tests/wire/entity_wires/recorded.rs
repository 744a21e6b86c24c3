//! Answers of real servers, none of which is the wanted value.

use advisor_chain::ErrorKind;
use advisor_testkit::recordings::{self, Recording};

use crate::entity_wires::wire::{End, wires};
use crate::entity_wires::{Chain, PIECES, oslo};

/// Each recorded answer is followed by the value. The outcome is the value, or an error that says why not; never a value
/// made of the recorded answer. A call of a recorded answer is of an unknown tool, which the model reads.
#[tokio::test]
async fn recorded_answers_are_repaired_or_refused() {
    for wire in wires() {
        let recordings = recordings::all(wire.api);
        let of_wire =
            |recording: &&Recording| wire.provider.is_none_or(|provider| recording.provider == provider);
        let (mut repaired, mut refused) = (0, 0);
        for recording in recordings.iter().filter(of_wire) {
            let value = || (wire.answer)(&PIECES, End::Whole);
            let chain = Chain::new(&wire, vec![recording.reply(), value(), value()], false).await;
            let case = format!("{} {}", wire.name, recording.name);
            match chain.value().await {
                Ok(city) => {
                    assert_eq!(city, oslo(), "{case}");
                    assert_eq!(chain.sent().len(), 2, "{case}");
                    let remembered = chain.remembered().await;
                    assert_eq!(remembered.last(), Some(&PIECES.concat()), "{case}");
                    repaired += 1;
                }
                Err(error) => {
                    assert!(
                        !matches!(error.kind(), ErrorKind::Configuration | ErrorKind::Advisor),
                        "{case} {error}"
                    );
                    assert_eq!(chain.sent().len(), 1, "{case} {error}");
                    refused += 1;
                }
            }
        }
        assert!(recordings.is_empty() || repaired > 0, "{} {repaired} {refused}", wire.name);
    }
}
