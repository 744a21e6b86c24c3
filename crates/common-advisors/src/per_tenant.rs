//! `PerTenant`: one value per tenant, for a bounded number of tenants; `tenant_of` a request.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use advisor_core::{ChatRequest, Error, ErrorKind, Result, Text};

/// The maximum number of tenants by default.
pub(crate) const MOST_TENANTS: usize = 10_000;

/// Returns the tenant of a request. Without a conversation it is `default`, as for conversations without a tenant.
pub(crate) fn tenant_of(request: &ChatRequest) -> &str {
    request.conversation.as_ref().map_or("default", |conversation| conversation.tenant())
}

/// One value per tenant, for a bounded number of tenants.
pub(crate) struct PerTenant<T> {
    values: Mutex<HashMap<Text, Arc<T>>>,
    most: usize,
}

impl<T> PerTenant<T> {
    pub(crate) fn new(most: usize) -> Self {
        Self { values: Mutex::default(), most }
    }

    /// Creates one with the same bound and without values.
    pub(crate) fn emptied(&self) -> Self {
        Self::new(self.most)
    }

    /// Returns the value of a tenant, and creates it if there is none. If there are too many tenants, idle values that
    /// no turn uses are removed first.
    ///
    /// # Errors
    /// Of kind [`TooLarge`](ErrorKind::TooLarge) if too many values are in use.
    pub(crate) fn of(
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
            let message =
                format!("more than {} tenants are counted at once; raise the number of tenants", self.most);
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        Ok(Arc::clone(values.entry(tenant.into()).or_insert_with(|| Arc::new(create()))))
    }

    /// Returns the tenants and their values.
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
        f.debug_struct("PerTenant").field("tenants", &self.lock().len()).field("most", &self.most).finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn law_r1_only_idle_values_make_room() {
        let values = PerTenant::new(2);
        let of = |tenant: &str, is_idle: bool| values.of(tenant, || (), |()| is_idle);
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
