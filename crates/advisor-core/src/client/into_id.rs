//! `IntoId`: accepts an id, its text or an `Option` for conversations and turns.

use crate::{ConversationKey, Result, TurnId};

/// A value that identifies a `T` or leaves it unset: an id, its text, or an `Option` of either.
///
/// [`Prompt::conversation`](crate::Prompt::conversation) and [`Prompt::turn`](crate::Prompt::turn) take it.
pub trait IntoId<T> {
    /// Returns the id, if any.
    ///
    /// # Errors
    /// If the text is not a valid id.
    fn into_id(self) -> Result<Option<T>>;
}

impl<T, I: IntoId<T>> IntoId<T> for Option<I> {
    fn into_id(self) -> Result<Option<T>> {
        self.map_or(Ok(None), I::into_id)
    }
}

macro_rules! into_id {
    ($($id:ty),*) => {$(
        impl IntoId<Self> for $id {
            fn into_id(self) -> Result<Option<Self>> {
                Ok(Some(self))
            }
        }

        impl IntoId<$id> for &$id {
            fn into_id(self) -> Result<Option<$id>> {
                Ok(Some(self.clone()))
            }
        }

        impl IntoId<$id> for &str {
            fn into_id(self) -> Result<Option<$id>> {
                <$id>::new(self).map(Some)
            }
        }

        impl IntoId<$id> for String {
            fn into_id(self) -> Result<Option<$id>> {
                <$id>::new(&self).map(Some)
            }
        }

        impl IntoId<$id> for &String {
            fn into_id(self) -> Result<Option<$id>> {
                <$id>::new(self).map(Some)
            }
        }
    )*};
}

into_id!(ConversationKey, TurnId);
