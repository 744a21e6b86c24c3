//! Turns that memory has, and those that it never had.

use advisor_core::{Error, ErrorKind, Phase};
use advisor_testkit::{Answer, FaultStore, StoreFault};
use chat_memory_advisor::{ChatMemoryAdvisor, MemoryReceipt};
use conversation_store::InMemoryStore;

use crate::support::{client, read_until, turn};

/// A failure of the model comes after memory has the turn, one of the store or of a busy conversation before.
#[tokio::test]
async fn receipt_tells_whether_memory_has_the_turn() {
    for place in [Phase::Round, Phase::Turn] {
        let store = FaultStore::new(InMemoryStore::new());
        let memory = ChatMemoryAdvisor::new(store.clone());
        let failing = Answer::refused(Error::new(ErrorKind::Connection, "no route"));
        let answers = [Answer::from_text("one"), failing, Answer::new().text("three").hang()];
        let (client, _) = client(&memory, place, answers);
        let asked = || {
            let receipt = MemoryReceipt::default();
            (client.prompt().user("u").conversation("c").extension(receipt.clone()).stream(), receipt)
        };
        for (is_answered, has_turn) in [(true, true), (false, true)] {
            let (turn, receipt) = asked();
            assert!(!receipt.has_turn(), "{place:?}: the turn has not begun");
            assert_eq!((turn.call().await.is_ok(), receipt.has_turn()), (is_answered, has_turn), "{place:?}");
        }
        store.fail_at(store.operations(), StoreFault::Unavailable);
        let (refused, receipt) = asked();
        assert_eq!(refused.call().await.unwrap_err().kind(), ErrorKind::Store, "{place:?}");
        assert!(!receipt.has_turn(), "{place:?}");
        let mut running = turn(&client, "u");
        read_until(&mut running, "three").await;
        let (busy, receipt) = asked();
        assert_eq!(busy.call().await.unwrap_err().kind(), ErrorKind::ConversationBusy, "{place:?}");
        assert!(!receipt.has_turn(), "{place:?}");
    }
}
