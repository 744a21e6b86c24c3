//! `Readiness`: whether the store answers, asked at most once a second. Also `in_time`, which bounds a wait for it.

use std::time::Duration;

use chat_memory_advisor::store::Page;
use chat_memory_advisor::{ChatMemoryAdvisor, StoreError};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::refusal::{Refusal, log_failure};

/// The time within which the store of a ready server answers.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// The time for which an answer counts.
const REMEMBERED: Duration = Duration::from_secs(1);

/// The time after which an operation of the store has failed, as those of memory do.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);

/// Runs an operation of the store.
///
/// # Errors
/// Those of the operation, or if it takes longer than 30 seconds.
pub(crate) async fn in_time<T>(
    operation: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let silent = || StoreError::unavailable("the store has not answered for 30 seconds");
    timeout(LONGEST, operation).await.unwrap_or_else(|_| Err(silent()))
}

/// The last answer of the store, with its time. Requests wait for one another, so they share the next one.
#[derive(Default)]
pub(crate) struct Readiness(Mutex<Option<(Instant, Result<(), Refusal>)>>);

impl Readiness {
    /// Asks the store, unless it has answered lately.
    ///
    /// # Errors
    /// If the store fails, or does not answer in time.
    pub(crate) async fn check(&self, memory: &ChatMemoryAdvisor) -> Result<(), Refusal> {
        let mut last = self.0.lock().await;
        match &*last {
            Some((since, answer)) if since.elapsed() < REMEMBERED => answer.clone(),
            _ => {
                let answer = ask(memory).await;
                *last = Some((Instant::now(), answer.clone()));
                answer
            }
        }
    }
}

async fn ask(memory: &ChatMemoryAdvisor) -> Result<(), Refusal> {
    match timeout(STORE_TIMEOUT, memory.store().list(&Page::first("default", 1))).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => {
            log_failure(&error.into());
            Err(Refusal::no_store())
        }
        Err(_) => Err(Refusal::no_store()),
    }
}
