//! A turn is stopped at each of its await points, or something fails there: whatever happened, what must hold holds,
//! and the conversation goes on. With the feature `crash`.
//!
//! One macro runs it on what a third party wrote:
//!
//! | on | there is |
//! | --- | --- |
//! | a store | [`crash_points_of_store!`](crate::crash_points_of_store) |
//! | an advisor | [`crash_points_of_advisor!`](crate::crash_points_of_advisor) |
//! | a whole chain | [`crash_points_of_chain!`](crate::crash_points_of_chain) |
//!
//! Each makes one test per [`Scenario`]; [`CrashDriver`] is what they use, and what runs pairs of points.
//!
//! | word | type |
//! | --- | --- |
//! | await point: a pending or a ready of an instrumented leaf, numbered as the turn passes it | [`AwaitPoints`], [`Place`] |
//! | leaf: what a chain waits for in the end | [`Leaves`], [`PointStore`], [`PointModel`], [`PointTool`], [`PointHooks`] |
//! | mishap: what happens at a point, a stop or a fault | [`Mishap`], [`Strike`] |
//! | scenario: what the model answers in a turn | [`Scenario`] |
//! | case: turns that are struck, and a last one that must work | [`CrashDriver`], [`Ran`], [`Happened`], [`Over`] |
//! | invariant: what holds in every case | [`Invariant`], [`BrokenInvariant`] |

mod drive;
mod driver;
mod happened;
mod invariants;
mod leaves;
mod mishap;
mod next_turns;
mod place;
mod points;
mod ran;
mod scenario;
mod suites;
#[cfg(test)]
mod tests;
mod words;

pub use driver::{CaseError, CrashDriver};
pub use happened::{Happened, Over};
pub use invariants::{BrokenInvariant, Invariant};
pub use leaves::Leaves;
pub use mishap::{Mishap, Strike};
pub use next_turns::next_turns_are_valid;
pub use place::Place;
pub use points::AwaitPoints;
pub use points::hooks::PointHooks;
pub use points::model::PointModel;
pub use points::store::{PointStore, StorePoints};
pub use points::tool::PointTool;
pub use ran::{Ran, TurnRan};
pub use scenario::Scenario;
pub use suites::{every_point_of_advisor, every_point_of_chain, every_point_of_store};
