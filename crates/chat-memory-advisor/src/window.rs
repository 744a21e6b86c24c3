use crate::View;

/// How much of a conversation the model is sent: a view at reading time, nothing is ever removed.
///
/// Whole turns are left out, oldest first. A call and its results never part, and the turn that is
/// running always stays whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Window {
    /// All of it.
    #[default]
    All,
    /// At most so many messages, those of the running turn's input included; more only if that alone is
    /// longer. Turns that were rolled back count towards what is looked through.
    Messages(usize),
}

impl Window {
    /// What has to be read so that everything that can be in the window is there.
    ///
    /// An ordinary turn has one entry that is no message, so twice as many entries hold the messages. Where
    /// turns went on after their end there are more, and the view may be of fewer messages than would fit.
    pub(crate) fn view(self) -> View {
        match self {
            Self::All => View::All,
            Self::Messages(count) => View::LastEntries(count.saturating_mul(2)),
        }
    }

    /// The first piece that stays, given the lengths of all; the last one is the running turn's.
    pub(crate) fn first_kept(self, lengths: &[usize]) -> usize {
        let Self::Messages(mut room) = self else { return 0 };
        let Some((running, earlier)) = lengths.split_last() else { return 0 };
        room = room.saturating_sub(*running);
        let fits = |length: &&usize| match room.checked_sub(**length) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        };
        earlier.len() - earlier.iter().rev().take_while(fits).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_window_is_filled_from_the_end_and_never_cuts(
            lengths in prop::collection::vec(1..9_usize, 1..12),
            count in 0..40_usize,
        ) {
            let from = Window::Messages(count).first_kept(&lengths);
            let kept: usize = lengths[from..].iter().sum();
            prop_assert!(from < lengths.len(), "the running turn stays");
            prop_assert!(kept <= count || from == lengths.len() - 1);
            if from > 0 {
                prop_assert!(kept + lengths[from - 1] > count, "another turn would have fitted");
            }
            prop_assert_eq!(Window::All.first_kept(&lengths), 0);
        }
    }
}
