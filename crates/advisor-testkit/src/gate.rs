//! A place where the peer waits until the test lets it go on.

use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;

/// A place where a scripted peer waits until the test lets it go on: the alternative to sleeping.
///
/// One gate is one place. The peer holds one clone of it, the test another. Once released it stays open.
/// A gate that nobody releases waits for as long as the peer lives.
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
///     gate.reached().await; // the peer stands at the gate: look at the world now
///     gate.release();
/// };
/// tokio::join!(peer, test);
/// # }
/// ```
#[derive(Clone)]
pub struct Gate {
    state: Arc<watch::Sender<State>>,
}

#[derive(Clone, Copy, Default)]
struct State {
    reached: bool,
    released: bool,
}

impl Gate {
    /// A closed gate that nobody has reached.
    pub fn new() -> Self {
        Self { state: Arc::new(watch::Sender::new(State::default())) }
    }

    /// Waits until the peer has come to this gate, or returns at once if it has been here already.
    pub async fn reached(&self) {
        self.until(|state| state.reached).await;
    }

    /// Lets the peer go on, now or when it comes.
    pub fn release(&self) {
        self.state.send_modify(|state| state.released = true);
    }

    /// The peer's side: says that it is here, and waits until the gate is released.
    pub async fn pass(&self) {
        self.state.send_modify(|state| state.reached = true);
        self.until(|state| state.released).await;
    }

    /// Whether the peer has come to this gate.
    pub fn is_reached(&self) -> bool {
        self.state.borrow().reached
    }

    /// Whether the gate has been released.
    pub fn is_released(&self) -> bool {
        self.state.borrow().released
    }

    async fn until(&self, condition: impl FnMut(&State) -> bool + Send) {
        let mut states = self.state.subscribe();
        // The sender lives in `self`, so the channel cannot close while we wait.
        let _ = states.wait_for(condition).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("reached", &self.is_reached())
            .field("released", &self.is_released())
            .finish()
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
