//! The macros that inject faults at every await point, as a third party uses them.

use advisor_conformance::crash::{AwaitPoint, AwaitPoints, Leaves, Operation};
use advisor_core::{AdvisorChain, ChatRequest, ConversationKey, Message, Phase, StreamAdvisor, from_fn};
use conversation_store::{ConversationStore, EntryId, InMemoryStore};

mod a_store {
    advisor_conformance::crash_points_of_store!(conversation_store::InMemoryStore::new());
}

fn watches() -> impl StreamAdvisor {
    from_fn("watches", |request: ChatRequest, next: AdvisorChain| async move {
        Ok(next.next_stream(request).await?.inspect_chunks(|_| {}))
    })
}

mod an_advisor {
    advisor_conformance::crash_points_of_advisor!(super::watches());
}

fn adds_a_note() -> impl StreamAdvisor {
    from_fn("adds-a-note", |request: ChatRequest, next: AdvisorChain| async move {
        let note = Message::user("It is late.").ephemeral();
        next.next_stream(request.with_message(note)).await
    })
}

mod an_advisor_that_adds_to_the_request {
    // It adds a message after that of the user. Providers accept this, but the request has two user messages in
    // a row.
    advisor_conformance::crash_points_of_advisor!(
        super::adds_a_note(),
        without MemoryIsThePrompt RequestsAreValid
    );
}

mod a_chain {
    use super::*;

    advisor_conformance::crash_points_of_chain!(|leaves: &Leaves| {
        let points = leaves.points.clone();
        let cache = from_fn("cache", move |request: ChatRequest, next: AdvisorChain| {
            let points = points.clone();
            async move {
                points.pass("cache").await?;
                next.next_stream(request).await
            }
        });
        let client = leaves.client().advisor_in(Phase::ModelCall, cache);
        client.advisor(leaves.tool_loop().build()?).advisor(leaves.memory()).build()
    });
}

#[tokio::test]
async fn reading_entries_and_branches_passes_points() {
    let points = AwaitPoints::new();
    let store = points.store(InMemoryStore::new());
    let key = ConversationKey::new("c").unwrap();
    store.read(&key, EntryId::BEGINNING, 9).await.unwrap();
    store.branches(&key).await.unwrap();
    assert_eq!(
        points.passed(),
        [[AwaitPoint::Before(Operation::Load), AwaitPoint::After(Operation::Load)]; 2].concat()
    );
}
