//! `Extensions`: values that advisors and tools of a turn leave for one another, one per type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
/// assert_eq!(turn.extensions().remove::<User>(), Some(User("ada".into())));
/// assert_eq!(turn.extensions().get::<User>(), None);
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

    /// Removes the value of this type and returns it.
    pub fn remove<T: Send + 'static>(&self) -> Option<T> {
        // Not dropped under the lock: its `Drop` may use the turn.
        let removed = self.lock().remove(&TypeId::of::<T>());
        removed?.downcast::<T>().ok().map(|value| *value)
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Turn, TurnId};

    #[test]
    fn extensions_are_kept_by_type() {
        let turn = Turn::new(TurnId::random());
        assert_eq!(turn.extensions().get::<u32>(), None);
        turn.extensions().insert(1_u32);
        turn.extensions().insert("two");
        assert_eq!(turn.extensions().update(|count: &mut u32| std::mem::replace(count, 3)), Some(1));
        assert_eq!((turn.extensions().get::<u32>(), turn.extensions().get::<&str>()), (Some(3), Some("two")));
    }

    #[test]
    fn removed_extension_is_returned_and_gone() {
        let turn = Turn::new(TurnId::random());
        turn.extensions().insert(1_u32);
        turn.extensions().insert("two");
        assert_eq!((turn.extensions().remove::<u32>(), turn.extensions().remove::<u32>()), (Some(1), None));
        assert_eq!((turn.extensions().get::<u32>(), turn.extensions().get::<&str>()), (None, Some("two")));
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
