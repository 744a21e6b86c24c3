//! The pass of a turn that finds the tools which a chain makes of a request.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::{ToolSet, Turn};

/// Whether a turn finds its tools, and who waits for them.
#[derive(Default)]
pub(super) enum Resolving {
    #[default]
    No,
    Waiting(oneshot::Sender<ToolSet>),
    Arrived,
}

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
        !matches!(self.lock().resolving, Resolving::No)
    }

    /// Begins the pass. The receiver gets the tools of the first request that arrives beside the model.
    pub(crate) fn begin_resolving(self: &Arc<Self>) -> (oneshot::Receiver<ToolSet>, ResolvingPass) {
        let (sender, receiver) = oneshot::channel();
        self.lock().resolving = Resolving::Waiting(sender);
        (receiver, ResolvingPass(Arc::clone(self)))
    }

    /// Notes that a request with these tools has arrived. Returns whether the turn only finds its tools: the request must
    /// not be answered then.
    pub(crate) fn note_arrival(&self, tools: &ToolSet) -> bool {
        let resolving = &mut self.lock().resolving;
        match resolving {
            Resolving::No => return false,
            Resolving::Arrived => {}
            Resolving::Waiting(_) => {
                if let Resolving::Waiting(waiting) = std::mem::replace(resolving, Resolving::Arrived) {
                    // Without a receiver, the pass is being dropped.
                    let _ = waiting.send(tools.clone());
                }
            }
        }
        true
    }
}

impl Drop for ResolvingPass {
    fn drop(&mut self) {
        self.0.lock().resolving = Resolving::No;
    }
}
