//! The clause that an answer does not depend on the pieces in which it arrives.

use advisor_core::{Block, BlockId, ChatResponse, Finish};

use super::inside::Inside;
use super::reading::Reader;
use super::script::{Cut, Pace, Script};
use super::subject::{Clause, Declaration, Subject};

/// The seeds of the random splits.
const SEEDS: u64 = 20;

const SAME: Clause = Clause {
    law: "law S5",
    rule: "any split of the text into pieces gives the same response",
    remedy: "decide on the text of the whole block so far, such as with `edit_text`; otherwise declare `DependsOnPieces`",
};

/// An answer that arrives whole, character by character or in random pieces gives the same response.
pub async fn law_s5_any_pieces_give_the_same_response(subject: &Subject) {
    if subject.declares(Declaration::DependsOnPieces) {
        return;
    }
    let random = (1..=SEEDS).map(Cut::Randomly);
    let cuts: Vec<_> = [Cut::Every(1), Cut::Every(4)].into_iter().chain(random).collect();
    for script in Script::all(subject) {
        let whole = outcome(subject, &script, Cut::Whole, Pace::AtOnce).await;
        for cut in cuts.iter().copied() {
            for pace in Pace::ALL {
                let cut_up = outcome(subject, &script, cut, pace).await;
                subject.breaks_if(cut_up != whole, SAME, || format!(
                            "{cut_up:?} if the text arrives in pieces ({cut:?}, {pace:?}), and {whole:?} if it is \
                             whole, of {}",
                            script.name
                        ));
            }
        }
    }
}

/// Returns the blocks of the response and the reason for its end, or the error in words.
async fn outcome(subject: &Subject, script: &Script, cut: Cut, pace: Pace) -> Result<Answered, String> {
    let run = Inside::new(subject, script.whole(cut, pace)).read(subject, Reader::Advisor).await;
    run.end.map(|response| answered(&response)).map_err(|error| format!("{:?}: {error}", error.kind()))
}

/// The blocks of a response and the reason for its end.
pub(super) type Answered = (Vec<(BlockId, Block)>, Finish);

pub(super) fn answered(response: &ChatResponse) -> Answered {
    let blocks = response.blocks().map(|(id, block)| (id, block.clone())).collect();
    (blocks, response.finish.clone())
}
