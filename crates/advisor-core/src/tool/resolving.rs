//! The pass of a turn that finds the tools which a chain makes of a request.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::{ToolSet, Turn};

/// Who waits for the tools of a turn, until they are found. An extension of the turn while it only finds its tools.
#[derive(Clone)]
struct Resolving(Arc<Mutex<Option<oneshot::Sender<ToolSet>>>>);

/// Ends the pass when it is dropped.
pub(crate) struct ResolvingPass(Arc<Turn>);

impl Turn {
    /// Checks whether the request on its way only finds the tools of the turn.
    ///
    /// Approved calls run before the first round, with the tools that its request has beside the model. To find them, the
    /// request passes the advisors inside memory once more before. It is dropped beside the model, as a cancelled one, so no
    /// model is asked. An advisor that counts calls of the model leaves it out.
    #[must_use]
    pub fn resolves_tools(&self) -> bool {
        self.extensions().get::<Resolving>().is_some()
    }

    /// Begins the pass. The receiver gets the tools of the first request that arrives beside the model.
    pub(crate) fn begin_resolving(self: &Arc<Self>) -> (oneshot::Receiver<ToolSet>, ResolvingPass) {
        let (sender, receiver) = oneshot::channel();
        self.extensions().insert(Resolving(Arc::new(Mutex::new(Some(sender)))));
        (receiver, ResolvingPass(Arc::clone(self)))
    }

    /// Notes that a request with these tools has arrived. Returns whether the turn only finds its tools: the request must
    /// not be answered then.
    pub(crate) fn note_arrival(&self, tools: &ToolSet) -> bool {
        let Some(Resolving(waiting)) = self.extensions().get() else { return false };
        if let Some(waiting) = waiting.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Without a receiver, the pass is being dropped.
            let _ = waiting.send(tools.clone());
        }
        true
    }
}

impl Drop for ResolvingPass {
    fn drop(&mut self) {
        self.0.extensions().remove::<Resolving>();
    }
}
