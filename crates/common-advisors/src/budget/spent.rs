//! `Spent`, the sums, and `Account`, which holds them.

use std::sync::{Mutex, PoisonError};

use super::money::Money;

/// The tokens and the money that were spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spent {
    /// The tokens of requests and answers.
    pub tokens: u64,
    /// The money, by the prices of the budget; 0 without prices.
    pub money: Money,
}

/// The account of a turn, of a tenant or of all turns.
#[derive(Debug, Default)]
pub(super) struct Account(Mutex<Spent>);

impl Account {
    pub(super) fn spent(&self) -> Spent {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn charge(&self, cost: Spent) {
        let mut spent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        spent.tokens = spent.tokens.saturating_add(cost.tokens);
        spent.money = spent.money.saturating_add(cost.money);
    }

    pub(super) fn reset(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Spent::default();
    }
}
