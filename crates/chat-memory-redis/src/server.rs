//! The server as the store uses it: its connection, its scripts and the names of its keys.

use std::sync::Arc;
use std::time::Duration;

use conversation_store::Result;
use redis::{ScriptInvocation, Value};

use crate::Prefix;
use crate::link::Link;
use crate::scripts::Scripts;

#[derive(Clone)]
pub(crate) struct Server {
    link: Arc<dyn Link>,
    pub(crate) prefix: Prefix,
    pub(crate) scripts: Arc<Scripts>,
    /// The timeout of getting a connection and of getting an answer, each.
    pub(crate) timeout: Duration,
}

impl Server {
    pub(crate) fn new(link: impl Link, prefix: Prefix, timeout: Duration) -> Self {
        Self { link: Arc::new(link), prefix, scripts: Arc::new(Scripts::new()), timeout }
    }

    /// Runs a script within the timeout.
    pub(crate) async fn run(&self, script: &ScriptInvocation<'_>) -> Result<Value> {
        self.link.run(script, self.timeout).await
    }
}
