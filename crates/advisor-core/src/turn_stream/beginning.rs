//! `Beginning`: the chain and the request with which a turn begins.

use crate::{AdvisorChain, ChatRequest, ChunkStream, Result};

/// The chain and the request with which a turn begins.
pub(crate) struct Beginning {
    pub(crate) chain: AdvisorChain,
    pub(crate) request: ChatRequest,
}

impl Beginning {
    /// Calls the chain.
    pub(super) async fn open(self) -> Result<ChunkStream> {
        let Self { chain, request } = self;
        request.turn.begin_with(&request.messages);
        chain.next_stream(request).await
    }
}
