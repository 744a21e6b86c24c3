//! `Extensions`: values that advisors and tools of a turn leave for one another, one per type; `OncePerTurn`, a value
//! that an advisor computes once per turn.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;

use crate::{Result, Turn};

/// Values that advisors and tools of one turn share: at most one of each type.
///
/// Like `http::Extensions`, but shared: reads return copies. One lock guards the values and is never held across
/// an await.
///
/// # Example
/// ```
/// use advisor_core::{Turn, TurnId};
///
/// #[derive(Debug, Clone, PartialEq)]
/// struct User(String);
///
/// let turn = Turn::new(TurnId::random());
/// turn.extensions().insert(User("ada".into()));
/// assert_eq!(turn.extensions().get::<User>(), Some(User("ada".into())));
/// ```
#[derive(Default)]
pub struct Extensions(Mutex<HashMap<TypeId, Box<dyn Any + Send>>>);

impl Extensions {
    /// Inserts a value and replaces one of the same type.
    pub fn insert<T: Clone + Send + 'static>(&self, value: T) {
        let replaced = self.lock().insert(TypeId::of::<T>(), Box::new(value));
        // Dropped after the lock is released: its `Drop` may use the turn.
        drop(replaced);
    }

    /// Returns a copy of the value of this type. Its `Clone` must not use the turn.
    #[must_use]
    pub fn get<T: Clone + Send + 'static>(&self) -> Option<T> {
        self.lock().get(&TypeId::of::<T>()).and_then(|value| value.downcast_ref()).cloned()
    }

    /// Changes the value of this type in place, starting from its default if none is stored. Neither `change` nor
    /// the default may use the turn.
    pub fn update<T: Default + Send + 'static, R>(&self, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut values = self.lock();
        let value = values.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(T::default()));
        value.downcast_mut().map(change)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TypeId, Box<dyn Any + Send>>> {
        // Code under the lock never leaves the map inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Omits the values, which may be of any type.
impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions").field("values", &self.lock().len()).finish_non_exhaustive()
    }
}

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
/// let name = OncePerTurn::default();
/// let turn = Turn::new(TurnId::random());
/// assert_eq!(name.get_or_try_init(&turn, async { Ok("Ada") }).await?, "Ada");
/// assert_eq!(name.get_or_try_init(&turn, async { Ok("Bob") }).await?, "Ada");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct OncePerTurn<T> {
    /// Its address identifies the instance. It is no zero-sized type, of which addresses may be equal.
    instance: Arc<u8>,
    value: PhantomData<fn() -> T>,
}

/// The values of a turn, each with its instance, which is kept so that no other one gets its address.
struct Values<T>(Vec<(Arc<u8>, Arc<OnceCell<T>>)>);

impl<T: Clone + Send + Sync + 'static> OncePerTurn<T> {
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

impl<T> Default for OncePerTurn<T> {
    fn default() -> Self {
        Self { instance: Arc::default(), value: PhantomData }
    }
}

impl<T> fmt::Debug for OncePerTurn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OncePerTurn").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TurnId;

    #[test]
    fn extensions_are_kept_by_type() {
        let turn = Turn::new(TurnId::random());
        assert_eq!(turn.extensions().get::<u32>(), None);
        turn.extensions().insert(1_u32);
        turn.extensions().insert("two");
        assert_eq!(turn.extensions().update(|count: &mut u32| std::mem::replace(count, 3)), Some(1));
        assert_eq!((turn.extensions().get::<u32>(), turn.extensions().get::<&str>()), (Some(3), Some("two")));
    }

    /// Records for each drop whether the turn could be used in it.
    #[derive(Clone)]
    struct UsesTheTurn(Arc<Turn>, Arc<Mutex<Vec<bool>>>);

    impl Drop for UsesTheTurn {
        fn drop(&mut self) {
            self.1.lock().unwrap().push(self.0.extensions().0.try_lock().is_ok());
        }
    }

    #[test]
    fn replaced_extension_may_use_turn_in_its_drop() {
        let turn = Turn::new(TurnId::random());
        let drops = Arc::new(Mutex::new(Vec::new()));
        let value = UsesTheTurn(Arc::clone(&turn), Arc::clone(&drops));
        turn.extensions().insert(Some(value.clone()));
        turn.extensions().insert(Some(value.clone()));
        let dropped = drops.lock().unwrap().clone();
        assert_eq!(dropped, [true], "the first one is dropped when the lock is free");
        // Breaks the cycle between the turn and its extension.
        turn.extensions().insert::<Option<UsesTheTurn>>(None);
    }
}
