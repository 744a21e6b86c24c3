/// The policy of a [`ModelJudge`](crate::ModelJudge) for a block that is too long to be shown whole to its model.
///
/// An allowed call runs with all of its arguments, whatever part of them was judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnLongBlock {
    /// The block has no verdict: an error of kind [`TooLarge`](advisor_core::ErrorKind::TooLarge), without a question
    /// to the model. [`OnFailure`](crate::OnFailure) decides, and denies by default.
    #[default]
    Fail,
    /// The model judges the beginning, with a note that the block is cut. Harm in the rest passes unseen.
    JudgeBeginning,
}
