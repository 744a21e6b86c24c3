//! `PerTenant`: one value per tenant, or one for all, for a bounded number of tenants.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use advisor_core::{ChatRequest, ConversationKey, Error, ErrorKind, Result, Text};

/// The maximum number of tenants.
const MOST_TENANTS: usize = 10_000;

/// One value per tenant, for a bounded number of tenants, or one for all.
pub(crate) struct PerTenant<T> {
    values: Mutex<HashMap<Text, Arc<T>>>,
    is_shared: bool,
    most: usize,
}

impl<T> PerTenant<T> {
    /// Creates an empty one. All tenants share one value if `is_shared`; its name is empty.
    pub(crate) fn new(is_shared: bool) -> Self {
        Self { values: Mutex::default(), is_shared, most: MOST_TENANTS }
    }

    /// Sets the maximum number of tenants.
    #[cfg(feature = "budget")]
    pub(crate) fn with_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Returns the value for a request, and creates it if there is none. A request without a conversation is one of the
    /// tenant `default`. If there are too many tenants, idle values that no turn uses are removed first.
    ///
    /// # Errors
    /// Of kind [`TooLarge`](ErrorKind::TooLarge) if too many values are in use.
    pub(crate) fn of(
        &self,
        request: &ChatRequest,
        create: impl FnOnce() -> T,
        is_idle: impl Fn(&T) -> bool,
    ) -> Result<Arc<T>> {
        let tenant = request.conversation.as_ref().map_or("default", ConversationKey::tenant);
        self.of_tenant(if self.is_shared { "" } else { tenant }, create, is_idle)
    }

    fn of_tenant(
        &self,
        tenant: &str,
        create: impl FnOnce() -> T,
        is_idle: impl Fn(&T) -> bool,
    ) -> Result<Arc<T>> {
        let mut values = self.lock();
        if let Some(value) = values.get(tenant) {
            return Ok(Arc::clone(value));
        }
        if values.len() >= self.most {
            values.retain(|_, value| Arc::strong_count(value) > 1 || !is_idle(value));
        }
        if values.len() >= self.most {
            let message = format!("more than {} tenants are counted at once", self.most);
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        Ok(Arc::clone(values.entry(tenant.into()).or_insert_with(|| Arc::new(create()))))
    }

    /// Returns the tenants and their values.
    #[cfg(feature = "budget")]
    pub(crate) fn all(&self) -> Vec<(Text, Arc<T>)> {
        self.lock().iter().map(|(tenant, value)| (tenant.clone(), Arc::clone(value))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Text, Arc<T>>> {
        // Code under the lock never leaves the map inconsistent.
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Omits the tenants.
impl<T> fmt::Debug for PerTenant<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerTenant").field("tenants", &self.lock().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn law_r1_only_idle_values_make_room() {
        let values = PerTenant { most: 2, ..PerTenant::new(false) };
        let of = |tenant: &str, is_idle: bool| values.of_tenant(tenant, || (), |()| is_idle);
        let used = of("a", true).unwrap();
        drop(of("b", true).unwrap());
        assert_eq!(of("c", false).unwrap_err().kind(), ErrorKind::TooLarge, "neither is idle");
        drop(of("c", true).unwrap());
        let mut tenants: Vec<_> = values.all().into_iter().map(|(tenant, _)| tenant).collect();
        tenants.sort();
        assert_eq!(tenants, ["a", "c"], "the value in use stays");
        assert!(Arc::ptr_eq(&used, &of("a", true).unwrap()));
    }
}
