//! Ctrl-C, or the corresponding signal.

use std::io;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::signal::ctrl_c;

/// One listener over many turns, so that an interrupt between two turns is not lost.
pub(super) struct Interrupts(BoxFuture<'static, io::Result<()>>);

impl Interrupts {
    pub(super) fn new() -> Self {
        Self(ctrl_c().boxed())
    }

    /// Waits for an interrupt after the last one that was returned or discarded.
    ///
    /// # Cancellation
    /// Dropping the future loses no interrupt.
    pub(super) async fn next(&mut self) -> io::Result<()> {
        let interrupt = (&mut self.0).await;
        self.0 = ctrl_c().boxed();
        interrupt
    }

    /// Discards earlier interrupts.
    pub(super) fn forget(&mut self) {
        self.0 = ctrl_c().boxed();
    }
}
