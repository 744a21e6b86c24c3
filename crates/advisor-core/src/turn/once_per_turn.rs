//! `OncePerTurn`: a value that an advisor computes once per turn.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::{Result, Turn};

/// A value of an advisor that is computed once per turn, also over many rounds and attempts.
///
/// The turn holds the value, so it ends with the turn. Clones share the values, and two instances never do.
///
/// # Ordering
/// The first request of a turn computes the value. Requests at the same time wait for it.
///
/// # Cancellation
/// If the computing future is dropped, the next request computes the value again.
///
/// # Errors
/// An error is not kept: the next request of the turn computes the value again.
///
/// # Example
/// ```
/// use advisor_core::{OncePerTurn, Turn, TurnId};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let name = OncePerTurn::new();
/// let turn = Turn::new(TurnId::random());
/// assert_eq!(name.get_or_try_init(&turn, async { Ok("Ada") }).await?, "Ada");
/// assert_eq!(name.get_or_try_init(&turn, async { Ok("Bob") }).await?, "Ada");
/// # Ok(()) }
/// ```
pub struct OncePerTurn<T> {
    /// Its address identifies the instance. It is no zero-sized type, of which addresses may be equal.
    instance: Arc<u8>,
    value: PhantomData<fn() -> T>,
}

/// The values of a turn, each with its instance, which is kept so that no other one gets its address.
struct Values<T>(Vec<(Arc<u8>, Arc<OnceCell<T>>)>);

impl<T: Clone + Send + Sync + 'static> OncePerTurn<T> {
    /// Creates an instance without a value.
    #[must_use]
    pub fn new() -> Self {
        Self { instance: Arc::default(), value: PhantomData }
    }

    /// Returns the value of this turn. Computes it with `compute` if there is none.
    ///
    /// # Errors
    /// That of `compute`.
    pub async fn get_or_try_init(&self, turn: &Turn, compute: impl Future<Output = Result<T>>) -> Result<T> {
        let value = turn.extensions().update(|values: &mut Values<T>| values.of(&self.instance));
        value.unwrap_or_default().get_or_try_init(|| compute).await.cloned()
    }
}

impl<T> Values<T> {
    fn of(&mut self, instance: &Arc<u8>) -> Arc<OnceCell<T>> {
        if let Some((_, value)) = self.0.iter().find(|(known, _)| Arc::ptr_eq(known, instance)) {
            return Arc::clone(value);
        }
        let value = Arc::new(OnceCell::new());
        self.0.push((Arc::clone(instance), Arc::clone(&value)));
        value
    }
}

impl<T> Default for Values<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Clone + Send + Sync + 'static> Default for OncePerTurn<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for OncePerTurn<T> {
    fn clone(&self) -> Self {
        Self { instance: Arc::clone(&self.instance), value: self.value }
    }
}

impl<T> fmt::Debug for OncePerTurn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OncePerTurn").finish_non_exhaustive()
    }
}
