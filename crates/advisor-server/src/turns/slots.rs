//! `Slots`: the number of turns that run, in all and of each tenant.

use std::collections::HashMap;
use std::sync::Arc;

use advisor_core::Text;
use tokio::sync::watch;

use crate::access::limits::ServerLimits;

/// The number of turns that run now, in all and of each tenant.
#[derive(Debug, Clone, Default)]
pub(super) struct Slots(Arc<watch::Sender<HashMap<Text, usize>>>);

/// The place of one running turn, which its drop gives back.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Slots,
    tenant: Text,
}

impl Slots {
    /// Takes a place for a turn of a tenant, unless as many run as the limits allow, in all or of this tenant.
    pub(super) fn take(&self, tenant: &str, limits: &ServerLimits) -> Option<Slot> {
        let tenant = Text::from(tenant);
        let is_taken = self.0.send_if_modified(|running| {
            let of_tenant = running.get(&tenant).copied().unwrap_or_default();
            let is_free = running.values().sum::<usize>() < limits.running_turns
                && of_tenant < limits.running_turns_per_tenant;
            if is_free {
                running.insert(tenant.clone(), of_tenant + 1);
            }
            is_free
        });
        is_taken.then(|| Slot { slots: self.clone(), tenant })
    }

    /// Waits until no turn runs.
    pub(super) async fn all_free(&self) {
        // The sender is in `self`, so it is not gone.
        drop(self.0.subscribe().wait_for(HashMap::is_empty).await);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.0.send_modify(|running| {
            if let Some(count) = running.get_mut(&self.tenant) {
                *count -= 1;
                if *count == 0 {
                    running.remove(&self.tenant);
                }
            }
        });
    }
}
