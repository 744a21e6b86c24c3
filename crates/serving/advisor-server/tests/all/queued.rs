//! Turns that wait for another one of their conversation.

use advisor_testkit::{Answer, Gate, ScriptedModel};
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore, OnBusy};
use serde_json::json;

use crate::setting::{Setting, chain_over, rest_of, text, until};

/// Returns a server whose turns wait for one another, and the streams of two turns: one answers, and one waits for it.
async fn two_turns(answer: Answer) -> (Setting, Vec<axum::body::BodyDataStream>) {
    let model = ScriptedModel::new([answer, Answer::from_text("It rains.")]);
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new()).with_on_busy(OnBusy::Queue);
    let setting = chain_over(memory, model, |client| client);
    let ask = |turn| json!({"message": "How is it?", "conversation": "c1", "turn": turn});
    let (_, first) = until(setting.post("/api/chat", &ask("t1")).await, "It is").await;
    let second = setting.post("/api/chat", &ask("t2")).await.into_body().into_data_stream();
    (setting, vec![first, second])
}

#[tokio::test(start_paused = true)]
async fn law_k2_stop_and_delete_end_waiting_turns_too() {
    for is_stop in [true, false] {
        let (setting, streams) = two_turns(Answer::new().text("It is").hang()).await;
        if is_stop {
            setting.stop().await
        } else {
            setting.delete().await
        }
        for stream in streams {
            let events = rest_of(stream).await;
            assert!(events.contains("the request was cancelled"), "{is_stop}: {events}");
        }
        assert_eq!(setting.model.calls(), 1, "{is_stop}");
    }
}

/// The turn that runs is the one that answers, not the one that waits.
#[tokio::test(start_paused = true)]
async fn turn_that_runs_is_the_oldest_one() {
    let gate = Gate::new();
    let (setting, _streams) = two_turns(Answer::new().text("It is").gate(&gate).text(" sunny.").done()).await;
    assert_eq!(setting.read().await["running"], "t1");
    let joined = setting.get("/api/conversations/c1/stream").await;
    gate.release();
    assert!(text(joined).await.contains("sunny."));
}
