//! `OnLongBlock`: what becomes of a block that the model cannot be shown whole.

/// The policy of a [`ModelJudge`](crate::ModelJudge) for a block that is too long for its model.
///
/// An allowed call runs with all of its arguments, even if only a part of them was judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnLongBlock {
    /// The judge fails with an error of kind [`TooLarge`](advisor_core::ErrorKind::TooLarge), without a request to the
    /// model. [`OnFailure`](crate::OnFailure) then decides about the block, and denies it by default.
    #[default]
    Fail,
    /// The model judges the beginning, with a note that the block is cut. Harm in the rest is not noticed.
    JudgeBeginning,
}
