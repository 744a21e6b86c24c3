//! Functions of the application that get the head of a request: its method, its address, its headers, and the
//! extensions that middleware has inserted.

use std::fmt;
use std::sync::Arc;

use advisor_core::Prompt;
use axum::http::request::Parts;

type TenantOf = dyn Fn(&Parts) -> Option<String> + Send + Sync;
type ChangeBy = dyn Fn(Prompt, &Parts) -> Prompt + Send + Sync;

/// Returns the tenant of a request, if the request is authenticated.
#[derive(Clone)]
pub(crate) struct Authenticate(Arc<TenantOf>);

/// Changes the prompt of a turn.
#[derive(Clone)]
pub(crate) struct ChangePrompt(Arc<ChangeBy>);

/// The change of the prompt for one request.
#[derive(Clone)]
pub(crate) struct PromptChange {
    change: ChangePrompt,
    head: Arc<Parts>,
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

    pub(crate) fn for_request(&self, head: &Parts) -> PromptChange {
        PromptChange { change: self.clone(), head: Arc::new(head.clone()) }
    }
}

impl PromptChange {
    pub(crate) fn apply(&self, prompt: Prompt) -> Prompt {
        (self.change.0)(prompt, &self.head)
    }
}

/// The head of a request may hold secrets.
impl fmt::Debug for PromptChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptChange").finish_non_exhaustive()
    }
}
