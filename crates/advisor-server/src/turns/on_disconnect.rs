//! `OnDisconnect`: what becomes of a turn whose client disconnects.

use advisor_core::{OnDrop, OnUnread};

/// The policy for a turn whose client disconnects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnDisconnect {
    /// The protocol cannot resume the turn. It stops, unless the application finishes dropped turns.
    Stop,
    /// The turn stops: the client has chosen so.
    StopOnRequest,
    /// The turn continues, and the client can join it again.
    Continue,
}

impl OnDisconnect {
    /// Returns the policy for the turn once nobody reads it any more. `on_drop` is that of the application for dropped turns.
    ///
    /// A turn that is finished keeps its slot and its handle.
    pub(super) fn on_unread(self, on_drop: OnDrop) -> OnUnread {
        match (self, on_drop) {
            (Self::Continue, _) | (Self::Stop, OnDrop::FinishTurn) => OnUnread::Continue,
            (Self::StopOnRequest, OnDrop::FinishTurn) => OnUnread::Cancel(OnDrop::KeepPartial),
            (Self::Stop | Self::StopOnRequest, mode) => OnUnread::Cancel(mode),
        }
    }
}
