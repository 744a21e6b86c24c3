//! Ctrl-C, or the signal that it stands for.

use std::io;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::signal::ctrl_c;

/// One listener over many turns: an interrupt between two of them is not lost.
pub(super) struct Interrupts(BoxFuture<'static, io::Result<()>>);

impl Interrupts {
    pub(super) fn new() -> Self {
        Self(ctrl_c().boxed())
    }

    /// Waits for an interrupt since the last one.
    ///
    /// # Cancellation
    /// Nothing is lost if it is dropped.
    pub(super) async fn next(&mut self) -> io::Result<()> {
        let interrupt = (&mut self.0).await;
        self.0 = ctrl_c().boxed();
        interrupt
    }

    /// Those that came before are none any more.
    pub(super) fn forget(&mut self) {
        self.0 = ctrl_c().boxed();
    }
}
