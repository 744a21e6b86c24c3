//! The conformance suite of an advisor: one clause per function, and the macro that runs them all.
//!
//! A clause puts the advisor between a scripted model, which records its chunks, and a reader. It compares both
//! sides, and panics with the law, the observation and the remedy.
//!
//! | clause | law |
//! | --- | --- |
//! | chunks come out in the poll in which they arrive, one by one and in batches, or later by no more than declared | S2 |
//! | chunks are well-formed and fold to the response, parallel ones and those after a restart, too; they are the model's, unless edits are declared | S3, S4 |
//! | any split of the text into pieces gives the same response | S5 |
//! | inner completion work ends before `Completed` comes out; its failure comes out in place of it | O1, O5 |
//! | a dropped or complete answer leaves no stream, no task and no work | K2, R2 |
//! | two turns at once through one advisor do not mix | S7 |
//! | a conversation sends and shows the same beside another one, instructions included, while the model calls the advisor's own tools, too | M5 |
//! | errors from inside arrive with their kind | S1 |
//! | the model receives the messages of the request | M2 |
//! | a chain with memory and a tool loop sends valid transcripts, the same with memory inside and outside the loop | M1, M4, O3 |
//! | the turn after a dropped one works | K4 |
//!
//! An advisor that deviates on purpose declares how: [`Declaration`] lists the deviations, and the clauses that each
//! one relaxes. The advisor must be deterministic, without a real clock and without randomness.
//!
//! Faults at await points, such as a store that fails, are those of `crash_points_of_advisor!`, with the feature
//! `crash`. [`advisor_allocations!`](crate::advisor_allocations!) counts allocations (law R4).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a clause fails by panicking"
)]

use futures::future::BoxFuture;

mod allocations;
mod apart;
mod at_once;
mod completion;
mod drops;
mod errors;
mod inside;
mod live;
mod memory;
mod pieces;
mod reading;
mod script;
mod subject;
mod whole;

pub use allocations::*;
pub use apart::*;
pub use at_once::*;
pub use completion::*;
pub use drops::*;
pub use errors::*;
pub use live::*;
pub use memory::*;
pub use pieces::*;
pub use subject::{Declaration, Subject};
pub use whole::*;

/// Runs every clause of the module [`advisor_conformance`](mod@crate::advisor) on an advisor, each as a
/// test.
///
/// The expression creates the advisor, once for each chain. `declares` lists its
/// [`Declaration`](crate::advisor::Declaration)s. `question` and `answer` set the words of the user and of
/// the model, for an advisor that reacts to certain ones. The crate that uses the macro needs tokio with `macros` and
/// `rt`.
///
/// # Example
/// ```
/// use advisor_core::{AdvisorChain, AdvisorRole, ChatRequest, HoldBack, Phase, Placement, StreamAdvisor, from_fn};
///
/// /// Adds instructions.
/// fn polite() -> impl StreamAdvisor {
///     from_fn("polite", |request: ChatRequest, next: AdvisorChain| async move {
///         next.next_stream(request.with_system("Be polite.")).await
///     })
/// }
///
/// /// Replaces a name.
/// fn discreet() -> impl StreamAdvisor {
///     from_fn("discreet", |request: ChatRequest, next: AdvisorChain| async move {
///         let answer = next.next_stream(request).await?;
///         Ok(answer.edit_text(HoldBack::Bytes(6), |text| text.replace_all(&[("Mallory", "[name]")])))
///     })
///     .with_placement(Placement { phase: Phase::ModelCall, role: AdvisorRole::InsideMemory })
/// }
///
/// mod conformance_of_polite {
///     advisor_conformance::advisor_conformance!(super::polite());
/// }
///
/// mod conformance_of_discreet {
///     advisor_conformance::advisor_conformance!(
///         super::discreet(),
///         declares EditsAnswers HoldsBackBytes(6),
///         answer "It was Mallory, and again Mallory."
///     );
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! advisor_conformance {
    (
        $make_advisor:expr
        $(, declares $($declared:ident $(($value:expr))?)+)?
        $(, question $question:expr)?
        $(, answer $answer:expr)?
        $(,)?
    ) => {
        $crate::advisor_conformance! { @all tests {
            let subject = $crate::advisor::Subject::new(|| $make_advisor);
            $(let subject = subject.with_declared([
                $($crate::advisor::Declaration::$declared $(($value))?),+
            ]);)?
            $(let subject = subject.with_question($question);)?
            $(let subject = subject.with_answer($answer);)?
            subject
        } }
    };
    (@all $form:ident $subject:tt) => {
        $crate::advisor_conformance! { @$form $subject
            law_s2_chunks_come_out_as_they_arrive
            law_s3_s4_chunks_fold_to_the_response
            law_s3_s4_restarted_answers_are_well_formed
            law_s5_any_pieces_give_the_same_response
            law_o1_inner_work_ends_before_completion
            law_o5_failure_of_inner_work_arrives
            law_k2_dropped_answer_leaves_nothing
            law_s7_two_turns_at_once_do_not_mix
            law_m5_conversations_stay_apart
            law_s1_errors_from_inside_arrive
            law_m2_model_receives_the_messages
            law_m1_m4_o3_memory_is_the_same_at_each_position
            law_k2_k4_turn_after_a_dropped_one_works
        }
    };
    (@tests $subject:block $($clause:ident)*) => {$(
        #[::tokio::test]
        async fn $clause() {
            let subject = $subject;
            $crate::advisor::$clause(&subject).await;
        }
    )*};
    (@named $subject:ident $($clause:ident)*) => {
        vec![$((stringify!($clause), futures::FutureExt::boxed($crate::advisor::$clause($subject)))),*]
    };
}

/// Returns every clause of the suite by its name, for one test over many advisors.
pub fn clauses(subject: &Subject) -> Vec<(&'static str, BoxFuture<'_, ()>)> {
    crate::advisor_conformance! { @all named subject }
}
