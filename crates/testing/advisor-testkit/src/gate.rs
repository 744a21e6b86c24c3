//! A place where a peer waits until the test releases it.

use std::sync::Arc;
use tokio::sync::watch;

/// A place where a scripted peer waits until the test releases it: an alternative to sleeping.
///
/// One gate is one place. The peer holds one clone of it, the test another. Once released, a gate stays open.
/// Without a release, the peer waits as long as it lives.
///
/// # Cancellation
///
/// Both waits can be dropped at any time and lose nothing.
///
/// # Example
///
/// ```
/// use advisor_testkit::Gate;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let gate = Gate::new();
/// let peer = {
///     let gate = gate.clone();
///     async move { gate.pass().await }
/// };
/// let test = async {
///     gate.reached().await; // the peer waits at the gate: check the state now
///     gate.release();
/// };
/// tokio::join!(peer, test);
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Gate {
    state: Arc<watch::Sender<State>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    reached: bool,
    released: bool,
}

impl Gate {
    /// Creates a closed gate that no peer has reached.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until the peer has reached this gate; returns at once if it has. Somebody else must poll the peer meanwhile: a
    /// turn that only this task would poll never comes here.
    pub async fn reached(&self) {
        self.until(|state| state.reached).await;
    }

    /// Releases the peer, now or when it arrives.
    pub fn release(&self) {
        self.state.send_modify(|state| state.released = true);
    }

    /// Reports the peer's arrival, and waits until the gate is released.
    pub async fn pass(&self) {
        self.state.send_modify(|state| state.reached = true);
        self.until(|state| state.released).await;
    }

    /// Checks whether the peer has reached this gate.
    pub fn is_reached(&self) -> bool {
        self.state.borrow().reached
    }

    async fn until(&self, condition: impl FnMut(&State) -> bool + Send) {
        let mut states = self.state.subscribe();
        // The sender lives in `self`, so the channel cannot close while we wait.
        let _ = states.wait_for(condition).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn the_peer_waits_until_it_is_released() {
        let gate = Gate::new();
        let mut pass = Box::pin(gate.pass());
        assert!(gate.reached().now_or_never().is_none());
        assert!(pass.as_mut().now_or_never().is_none());
        assert!(gate.reached().now_or_never().is_some());
        gate.release();
        assert!(pass.as_mut().now_or_never().is_some());
    }

    #[test]
    fn a_gate_released_early_only_reports() {
        let gate = Gate::new();
        gate.release();
        assert!(!gate.is_reached());
        assert!(gate.pass().now_or_never().is_some());
        assert!(gate.is_reached());
    }
}
