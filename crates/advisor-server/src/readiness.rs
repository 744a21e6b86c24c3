//! `Readiness`: whether the store answers, asked at most once a second.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chat_memory_advisor::ChatMemoryAdvisor;
use chat_memory_advisor::store::Page;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio::time::{Instant, timeout};

use crate::refusal::{Refusal, log_failure};

/// The time within which the store of a ready server answers.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// The time for which an outcome counts, from the moment at which the store was asked.
const REMEMBERED: Duration = Duration::from_secs(1);

/// Whether the store answers. Requests within a second share one question to it.
#[derive(Default)]
pub(crate) struct Readiness(Mutex<Option<(Instant, Asking)>>);

type Asking = Shared<BoxFuture<'static, Result<(), Refusal>>>;

impl Readiness {
    /// Asks the store, or waits for the outcome of the last question.
    ///
    /// # Errors
    /// If the store fails, or does not answer in time.
    pub(crate) async fn check(&self, memory: &ChatMemoryAdvisor) -> Result<(), Refusal> {
        self.asking(memory).await
    }

    fn asking(&self, memory: &ChatMemoryAdvisor) -> Asking {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((since, asking)) if since.elapsed() < REMEMBERED => asking.clone(),
            _ => {
                let asking = ask(memory.clone()).boxed().shared();
                *last = Some((Instant::now(), asking.clone()));
                asking
            }
        }
    }
}

async fn ask(memory: ChatMemoryAdvisor) -> Result<(), Refusal> {
    let page = Page::first("default", 1);
    match timeout(STORE_TIMEOUT, memory.store().list(&page)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => {
            log_failure(&error.into());
            Err(Refusal::no_store())
        }
        Err(_) => Err(Refusal::no_store()),
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readiness").finish_non_exhaustive()
    }
}
