use std::sync::Arc;

use advisor_core::{ChatRequest, Result, Text, Turn};

use super::spent::{Account, Spent};
use crate::per_tenant::{PerTenant, tenant_of};

/// The accounts of a budget.
#[derive(Debug)]
pub(super) enum Accounts {
    /// Each turn has its own, in its extensions.
    PerTurn,
    /// Several turns have the same.
    Shared(Shared),
}

#[derive(Debug)]
pub(super) enum Shared {
    PerTenant(PerTenant<Account>),
    One(Arc<Account>),
}

/// Turn extension: the accounts that the turn uses, by their budgets. A turn with an account has begun.
#[derive(Default)]
struct Noted(Vec<(Arc<Accounts>, Arc<Account>)>);

impl Accounts {
    /// Returns the account of a turn that begins.
    pub(super) fn of(&self, request: &ChatRequest) -> Result<Arc<Account>> {
        match self {
            Self::PerTurn => Ok(Arc::default()),
            Self::Shared(Shared::One(account)) => Ok(Arc::clone(account)),
            Self::Shared(Shared::PerTenant(accounts)) => {
                let is_unused = |account: &Account| account.spent() == Spent::default();
                accounts.of(tenant_of(request), Account::default, is_unused)
            }
        }
    }

    /// Notes that the turn has begun, and its account.
    pub(super) fn note(self: &Arc<Self>, turn: &Turn, account: &Arc<Account>) {
        let entry = (Arc::clone(self), Arc::clone(account));
        turn.extensions().update(|noted: &mut Noted| noted.0.push(entry));
    }

    /// Returns the account of a turn that has begun.
    pub(super) fn noted(self: &Arc<Self>, turn: &Turn) -> Option<Arc<Account>> {
        let find = |noted: &mut Noted| {
            let entry = noted.0.iter().find(|(accounts, _)| Arc::ptr_eq(accounts, self));
            entry.map(|(_, account)| Arc::clone(account))
        };
        turn.extensions().update(find).flatten()
    }

    /// Returns the shared accounts, with their tenants.
    pub(super) fn all(&self) -> Vec<(Text, Arc<Account>)> {
        match self {
            Self::PerTurn => Vec::new(),
            Self::Shared(Shared::One(account)) => vec![(Text::default(), Arc::clone(account))],
            Self::Shared(Shared::PerTenant(accounts)) => accounts.all(),
        }
    }

    /// Returns whose budget it is, as the end of a sentence.
    pub(super) fn scope(&self) -> &'static str {
        match self {
            Self::PerTurn => " for one turn",
            Self::Shared(Shared::PerTenant(_)) => " for one tenant",
            Self::Shared(Shared::One(_)) => " for all turns",
        }
    }
}
