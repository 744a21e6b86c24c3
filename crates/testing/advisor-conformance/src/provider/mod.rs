//! The conformance suite of a provider: one clause per function, and the macro that runs them all.
//!
//! A clause describes an answer by its parts, in terms of no provider. A [`WireFamily`] writes these parts as the
//! provider's server does. The replay server sends the bytes, whole, byte by byte and at random splits. The clause
//! compares the chunks, the response or the error with the parts, and checks the laws of streams on them. A clause
//! panics if the provider violates it.
//!
//! ```
//! # use std::sync::Arc;
//! # use advisor_core::{ChatModel, FinishReason};
//! # use advisor_conformance::provider::{AnswerPart, WireFamily};
//! # use advisor_testkit::ScriptedModel;
//! use bytes::Bytes;
//! # fn some_model(_url: &str) -> Arc<dyn ChatModel> { Arc::new(ScriptedModel::new([])) }
//!
//! /// A format of one JSON object per line.
//! struct Lines;
//!
//! impl WireFamily for Lines {
//!     fn model(&self, url: &str) -> Arc<dyn ChatModel> {
//!         some_model(url)
//!     }
//!     fn write(&self, parts: &[AnswerPart]) -> Option<Vec<Bytes>> {
//!         let line = |part: &AnswerPart| match part {
//!             AnswerPart::Text(text) => Some(format!("{{\"say\":{text:?}}}\n").into()),
//!             AnswerPart::Finish(FinishReason::Stop) => Some("{\"over\":true}\n".into()),
//!             // And so on; `None` for a part that the format cannot express.
//!             _ => None,
//!         };
//!         parts.iter().map(line).collect()
//!     }
//! }
//!
//! mod conformance {
//!     // The expression makes the family.
//!     advisor_conformance::provider_conformance!(super::Lines);
//! }
//! # fn main() {}
//! ```
//!
//! Each clause becomes a test on a tokio runtime, so the crate that uses the macro needs tokio with `macros` and `rt`.
//!
//! Some formats cannot express every part. If [`WireFamily::write`] returns `None`, the clause reports that on
//! standard error and passes. Text, tool calls, ends and failures are in every format: clauses about them alone fail
//! instead.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a clause fails by panicking"
)]

mod answers;
mod connections;
mod ends;
mod expected;
mod family;
mod laws;
mod play;
mod requests;
mod run;
mod traces;

pub use answers::*;
pub use connections::*;
pub use ends::*;
pub use family::{AnswerPart, WireFamily};
pub use requests::*;
pub use traces::*;

/// Runs every clause of the module [`conformance`](mod@crate::provider) on a provider, each as a test.
///
/// The expression makes a [`WireFamily`](crate::provider::WireFamily). A client of another library may be unable to
/// keep all clauses: `provider_conformance!(family, without status_has_its_kind …)` leaves out those that it names.
#[macro_export]
macro_rules! provider_conformance {
    ($family:expr $(, without $($left_out:ident)+)?) => {
        /// The clauses that are left out. Each exists.
        const LEFT_OUT: &[&str] = {
            $($(let _ = $crate::provider::$left_out;)+)?
            &[$($(stringify!($left_out)),+)?]
        };
        $crate::provider_conformance! { @tests $family;
            text_streams_in_order
            text_of_all_sorts_survives
            reasoning_precedes_text
            call_arrives_whole
            call_may_have_no_arguments
            parallel_calls_stay_apart
            parallel_calls_of_one_tool_stay_apart
            call_follows_text
            text_follows_call
            text_surrounds_call
            white_space_between_blocks_is_text
            refusal_is_no_text
            usage_is_counted
            usage_may_come_late
            unknown_event_is_skipped
            empty_answer_is_marked
            length_is_reported
            end_of_body_needs_a_finish
            cut_call_never_runs
            broken_connection_is_an_error
            failure_follows_text
            failure_follows_call
            failure_may_come_first
            malformed_event_is_an_error
            status_has_its_kind
            tool_results_are_sent_back
            tool_names_come_back
            schema_of_a_tool_is_sent_as_it_is
            law_r3_traces_show_no_secret_and_no_content
            law_s2_pieces_are_shown_as_they_arrive
            law_s7_two_answers_at_once_do_not_mix
            law_r2_dropped_answer_closes_its_connection
            law_r2_complete_answer_leaves_no_connection_in_use
        }
    };
    (@tests $family:expr; $($clause:ident)*) => {$(
        #[::tokio::test]
        async fn $clause() {
            if LEFT_OUT.contains(&stringify!($clause)) {
                eprintln!("left out");
                return;
            }
            $crate::provider::$clause(&$family).await;
        }
    )*};
}
