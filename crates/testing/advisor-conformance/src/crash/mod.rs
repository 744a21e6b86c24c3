//! Tests that stop a turn at each of its await points, or inject a fault there. Whatever happens, the
//! invariants must hold and the conversation must continue. With the feature `crash`.
//!
//! One macro runs the tests on third-party code:
//!
//! | of | macro |
//! | --- | --- |
//! | a store | [`crash_points_of_store!`](crate::crash_points_of_store) |
//! | an advisor | [`crash_points_of_advisor!`](crate::crash_points_of_advisor) |
//! | a whole chain | [`crash_points_of_chain!`](crate::crash_points_of_chain) |
//!
//! Each macro makes one test per [`Scenario`]. The tests use [`CrashDriver`], which also runs pairs of points.
//!
//! | word | type |
//! | --- | --- |
//! | await point: a pending or a ready of a leaf, numbered in passing order | [`AwaitPoints`], [`AwaitPoint`], [`Operation`] |
//! | leaf: an innermost wait of a chain | [`Leaves`], [`PointStore`] |
//! | fault: a stop of the turn or a failure of a leaf, injected at a point | [`Fault`], [`Injection`] |
//! | scenario: the model's answers in a turn | [`Scenario`] |
//! | case: turns with faults, and a last one that must work | [`CrashDriver`], [`CaseRun`], [`TurnRun`], [`Event`], [`Outcome`] |
//! | invariant: a condition that holds in every case | [`Invariant`] |

mod await_point;
mod case_run;
mod drive;
mod driver;
mod event;
mod fault;
mod invariants;
mod leaves;
mod next_turns;
mod points;
mod scenario;
mod suites;
#[cfg(test)]
mod tests;

pub use await_point::{AwaitPoint, Operation};
pub use case_run::{CaseRun, TurnRun};
pub use driver::CrashDriver;
pub use event::{Event, Outcome};
pub use fault::{Fault, Injection};
pub use invariants::{BrokenInvariant, Invariant};
pub use leaves::Leaves;
pub use next_turns::next_turns_are_valid;
pub use points::AwaitPoints;
pub use points::store::{LeasePoints, PointStore, StorePoints, with_leases};
pub use scenario::Scenario;
pub use suites::{every_point_of_advisor, every_point_of_chain, every_point_of_store};
