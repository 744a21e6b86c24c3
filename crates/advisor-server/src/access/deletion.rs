//! `OnDelete`: work of the application before a conversation is deleted.

use std::sync::Arc;

use advisor_core::{ConversationKey, Result};
use futures::FutureExt;
use futures::future::BoxFuture;

type Work = dyn Fn(ConversationKey) -> BoxFuture<'static, Result<()>> + Send + Sync;

/// Work of the application before a conversation is deleted.
#[derive(Clone)]
pub(crate) struct OnDelete(Arc<Work>);

impl OnDelete {
    pub(crate) fn new<F>(work: impl Fn(ConversationKey) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        Self(Arc::new(move |key| work(key).boxed()))
    }

    /// Runs the work.
    ///
    /// # Errors
    /// Those of the application: the conversation is kept.
    pub(crate) async fn run(&self, key: &ConversationKey) -> Result<()> {
        (self.0)(key.clone()).await
    }
}
