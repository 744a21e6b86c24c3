//! `Accounts`: the account of a turn, its own or a shared one, noted in the turn's extensions.

use std::sync::Arc;

use advisor_core::{ChatRequest, Limit, Result, Text, Turn};

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

/// Turn extension: the accounts that the turn uses. A turn with an account has begun.
#[derive(Default)]
struct Noted(Vec<Entry>);

/// The account that a turn uses of one budget.
struct Entry {
    accounts: Arc<Accounts>,
    account: Arc<Account>,
    /// The limit at which the turn ends. An answer was complete when it was reached.
    ended: Option<Limit>,
    /// Whether the last answer, without tools, was given.
    has_last_answer: bool,
}

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

    /// Notes that the turn has begun, and returns its account: this one, unless another call of the turn was faster.
    pub(super) fn note(self: &Arc<Self>, turn: &Turn, account: Arc<Account>) -> Arc<Account> {
        let (accounts, noted) = (Arc::clone(self), Arc::clone(&account));
        let entry = Entry { accounts, account: noted, ended: None, has_last_answer: false };
        turn.extensions().update(|noted: &mut Noted| {
            if !noted.0.iter().any(|known| Arc::ptr_eq(&known.accounts, self)) {
                noted.0.push(entry);
            }
        });
        self.noted(turn).unwrap_or(account)
    }

    /// Returns the account of a turn that has begun.
    pub(super) fn noted(self: &Arc<Self>, turn: &Turn) -> Option<Arc<Account>> {
        self.with_entry(turn, |entry| Arc::clone(&entry.account))
    }

    /// Notes that an answer of the turn is complete, and the limit that its account has reached by then.
    pub(super) fn note_answer(self: &Arc<Self>, turn: &Turn, reached: Option<Limit>) {
        let is_last = turn.facts(|facts| facts.is_last_answer);
        self.with_entry(turn, |entry| {
            entry.ended = reached.or_else(|| entry.ended.take());
            entry.has_last_answer |= is_last;
        });
    }

    /// Returns the limit for which a turn that has begun may not call the model. A tool loop may ask for one last answer.
    pub(super) fn refusal(self: &Arc<Self>, turn: &Turn) -> Option<Limit> {
        let is_last = turn.facts(|facts| facts.is_last_answer);
        self.with_entry(turn, |entry| entry.ended.clone().filter(|_| entry.has_last_answer || !is_last))?
    }

    fn with_entry<R>(self: &Arc<Self>, turn: &Turn, with: impl FnOnce(&mut Entry) -> R) -> Option<R> {
        let find = |noted: &mut Noted| {
            let entry = noted.0.iter_mut().find(|entry| Arc::ptr_eq(&entry.accounts, self));
            entry.map(with)
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

#[cfg(test)]
mod tests {
    use advisor_core::TurnId;

    use super::*;

    /// Two calls of one turn may begin at the same time.
    #[test]
    fn turn_has_one_account() {
        let (accounts, turn) = (Arc::new(Accounts::PerTurn), Turn::new(TurnId::random()));
        let [one, other] = [(); 2].map(|()| accounts.note(&turn, Arc::default()));
        assert!(Arc::ptr_eq(&one, &other));
    }
}
