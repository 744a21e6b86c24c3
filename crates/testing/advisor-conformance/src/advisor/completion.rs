//! Clauses about the end of an answer: the work of inner advisors comes first.

use advisor_core::{ErrorKind, Usage};

use super::inside::{COUNTED, Inside, Work};
use super::reading::{Reader, read};
use super::script::{Cut, Pace, Script};
use super::subject::{Clause, Declaration, Subject};
use crate::run::Run;

const WORK_FIRST: Clause = Clause {
    law: "law O1",
    rule: "the completion work of inner advisors ends before anyone outside sees `Completed`",
    remedy: "return the `Completed` of the inner stream, and put work of your own into `on_completed`; \
             to end an answer early, use `end_when` or an editor",
};
const ITS_RESPONSE: Clause = Clause {
    law: "law O1",
    rule: "the response that inner completion work returns arrives outside",
    remedy: "return the response of the inner `Completed`, and do not keep one of your own",
};
const WORK_FAILS: Clause = Clause {
    law: "law O5",
    rule: "after a failure of inner completion work, the error comes out in place of the completion",
    remedy: "pass on the error of the inner stream; otherwise declare `HandlesErrors`",
};

/// The completion work of an inner advisor has ended, and its stream is dropped, before `Completed` comes out.
pub async fn law_o1_inner_work_ends_before_completion(subject: &Subject) {
    for script in Script::all(subject) {
        for pace in Pace::ALL {
            for reader in Reader::ALL {
                let inside = Inside::new(subject, script.whole(Cut::Every(5), pace));
                let items = inside.open(subject, reader);
                let (journal, live) = (inside.journal().clone(), inside.clone());
                let watched = Box::pin(futures::StreamExt::inspect(items, move |item| {
                    if item.as_ref().is_ok_and(|chunk| chunk.completed().is_some()) {
                        journal.record(format!("outside: completed, with {} inner streams", live.live()));
                    }
                }));
                let run = read(subject, watched).await;
                check_work(subject, &inside, script.name);
                check_response(subject, &inside, &run);
            }
        }
    }
}

fn check_work(subject: &Subject, inside: &Inside, what: &str) {
    let journal = inside.journal();
    let (begun, ended) = (journal.count("inner work begins *"), journal.count("inner work ends *"));
    // An advisor may end an answer with an error that the model did not give.
    if journal.count("outside: completed*") == 0 {
        return;
    }
    let is_early = ended > 0 && !journal.happens_before("inner work ends *", "outside: completed*");
    let is_live = journal.count("outside: completed, with 0 *") == 0;
    let is_left_out = ended == 0 && subject.asks_once() && !subject.declares(Declaration::EditsAnswers);
    subject.breaks_if(begun != ended || is_early || is_live || is_left_out, WORK_FIRST, || {
        format!("this order, in {what}:\n{journal}")
    });
}

fn check_response(subject: &Subject, inside: &Inside, run: &Run) {
    let Ok(response) = &run.end else { return };
    let is_its_own = subject.declares(Declaration::EditsAnswers) || !subject.asks_once();
    let (input, output) = COUNTED;
    subject.breaks_if(
        !is_its_own
            && inside.prompts().len() == 1
            && response.usage.as_ref() != Some(&Usage::new(input, output)),
        ITS_RESPONSE,
        || format!("{:?} in place of the tokens that the work counted", response.usage.as_ref()),
    );
}

/// A failure of inner completion work comes out as the error, and no completion does.
pub async fn law_o5_failure_of_inner_work_arrives(subject: &Subject) {
    if subject.declares(Declaration::HandlesErrors) {
        return;
    }
    for script in Script::all(subject) {
        for reader in Reader::ALL {
            let inside = Inside::new(subject, script.whole(Cut::Every(5), Pace::AtOnce));
            let inside = inside.with_work(Work::Fails(ErrorKind::NotPersisted));
            let run = inside.read(subject, reader).await;
            let failed = inside.journal().count("inner work begins *") > 0;
            let arrived = run.end.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotPersisted);
            subject
                .breaks_if(failed && !arrived, WORK_FAILS, || format!("{:?}, in {}", run.end, script.name));
        }
    }
}
