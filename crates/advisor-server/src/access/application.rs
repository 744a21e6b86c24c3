//! Functions of the application: who sends a request, how its prompt changes, and what a deletion also deletes. The first
//! two get the head of a request: its method, its address, its headers, and the extensions that middleware has inserted.

use std::fmt;
use std::sync::{Arc, OnceLock};

use advisor_core::{ChatClient, ChatOptions, ConversationKey, Prompt, Result};
use axum::http::request::Parts;
use futures::FutureExt;
use futures::future::BoxFuture;

type TenantOf = dyn Fn(&Parts) -> Option<String> + Send + Sync;
type ChangeBy = dyn Fn(Prompt, &Parts) -> Prompt + Send + Sync;

/// Returns the tenant of a request, if the request is authenticated.
#[derive(Clone)]
pub(crate) struct Authenticate(Arc<TenantOf>);

/// Changes the prompt of a turn.
#[derive(Clone)]
pub(crate) struct ChangePrompt(Arc<ChangeBy>);

/// The prompt of one request. Clones share it, so that the application changes it once.
#[derive(Clone)]
pub(crate) struct RequestPrompt {
    change: Option<(ChangePrompt, Arc<Parts>)>,
    /// The options that the request asks for.
    options: ChatOptions,
    changed: Arc<OnceLock<Prompt>>,
}

impl Authenticate {
    pub(crate) fn new(authenticate: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(authenticate))
    }

    pub(crate) fn tenant(&self, head: &Parts) -> Option<String> {
        (self.0)(head)
    }
}

impl ChangePrompt {
    pub(crate) fn new(change: impl Fn(Prompt, &Parts) -> Prompt + Send + Sync + 'static) -> Self {
        Self(Arc::new(change))
    }
}

impl RequestPrompt {
    pub(crate) fn new(change: Option<&ChangePrompt>, head: &Parts) -> Self {
        let change = change.map(|change| (change.clone(), Arc::new(head.clone())));
        Self { change, options: ChatOptions::default(), changed: Arc::default() }
    }

    /// Returns the prompt of a request that asks for these options. Those that the application sets count before them.
    pub(crate) fn with_options(&self, options: ChatOptions) -> Self {
        Self { change: self.change.clone(), options, changed: Arc::default() }
    }

    /// Returns the prompt as the application changes it, which happens in the first call.
    pub(crate) fn of(&self, client: &ChatClient) -> &Prompt {
        self.changed.get_or_init(|| {
            let prompt = client.prompt().options(self.options.clone());
            match &self.change {
                Some((change, head)) => (change.0)(prompt, head),
                None => prompt,
            }
        })
    }
}

/// The head of a request may hold secrets.
impl fmt::Debug for RequestPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestPrompt").finish_non_exhaustive()
    }
}

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
