pub(super) mod health;
pub(super) mod metrics;
