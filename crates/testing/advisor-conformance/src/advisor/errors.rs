//! The clause about errors from inside.

use std::time::Duration;

use advisor_core::{Error, ErrorKind};

use super::inside::Inside;
use super::reading::Reader;
use super::script::{Cut, End, Pace, Script};
use super::subject::{Clause, Declaration, Subject};
use super::whole::check_form;
use advisor_testkit::Answer;

const ARRIVES: Clause = Clause {
    law: "law S1",
    rule: "an error from inside ends the answer, with its kind",
    remedy: "pass on the error of the inner stream as it is; otherwise declare `HandlesErrors`",
};
/// An error of the model comes out with its kind, before the answer and after each part of it, and nothing follows.
pub async fn law_s1_errors_from_inside_arrive(subject: &Subject) {
    let limited = ErrorKind::RateLimited { retry_after: Some(Duration::from_secs(7)) };
    for kind in [limited, ErrorKind::Connection, ErrorKind::Provider { status: Some(500) }] {
        let refused = Answer::refused(Error::new(kind, "the model refuses"));
        check(subject, refused, Reader::Advisor, kind, "before the answer").await;
    }
    for script in Script::all(subject) {
        let deltas = script.deltas(Cut::Every(5));
        for sent in (0..=deltas.len()).filter_map(|until| deltas.get(..until)) {
            let ends = [(End::Fails(limited), limited), (End::Truncated, ErrorKind::Truncated)];
            for (end, kind) in ends {
                for pace in Pace::READY {
                    for reader in Reader::ALL {
                        let when = format!("after {} deltas of {}", sent.len(), script.name);
                        check(subject, script.answer(sent, pace, &end), reader, kind, &when).await;
                    }
                }
            }
        }
    }
}

async fn check(subject: &Subject, answer: Answer, reader: Reader, kind: ErrorKind, when: &str) {
    let inside = Inside::new(subject, answer);
    let run = inside.read(subject, reader).await;
    check_form(subject, &run, "an answer that fails");
    let was_asked = !inside.prompts().is_empty();
    // An advisor may have ended the answer before it failed.
    let may_complete = subject.declares(Declaration::EditsAnswers) || !was_asked;
    match &run.end {
        _ if subject.declares(Declaration::HandlesErrors) => {}
        Err(error) if error.kind() == kind || !was_asked => {}
        Ok(_) if may_complete => {}
        end => subject.breaks(ARRIVES, format_args!("{end:?} in place of an error of kind {kind:?} {when}")),
    }
}
