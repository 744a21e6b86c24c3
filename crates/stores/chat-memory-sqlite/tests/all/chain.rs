//! Whole turns through a chain, across a reopened file.

use advisor_core::{ChatClient, Message, Role};
use advisor_testkit::validate_transcript;
use advisor_testkit::{Answer, ScriptedModel};
use chat_memory_advisor::{ChatMemoryAdvisor, INTERRUPTED, Window};
use futures::StreamExt;

use crate::support::{File, key};

/// A client whose memory is in the file, as a new process would make it.
async fn client(file: &File, answer: Answer) -> (ChatClient, ScriptedModel) {
    let memory = ChatMemoryAdvisor::new(file.open().await).with_window(Window::Messages(20));
    let model = ScriptedModel::new([answer]);
    (ChatClient::builder(model.clone()).system("S").advisor(memory).build().unwrap(), model)
}

async fn ask(file: &File, user: &str, answer: &str) -> Vec<String> {
    let (client, model) = client(file, Answer::from_text(answer)).await;
    let response = client.prompt().user(user).conversation("c").call().await.unwrap();
    assert_eq!(response.text(), answer);
    let sent = &model.prompts()[0].messages;
    assert_eq!(validate_transcript(sent), []);
    sent.iter().map(Message::text).collect()
}

#[tokio::test]
async fn each_turn_is_sent_what_earlier_processes_stored() {
    let file = File::new();
    assert_eq!(ask(&file, "1", "one").await, ["S", "1"]);
    assert_eq!(ask(&file, "2", "two").await, ["S", "1", "one", "2"]);
    assert_eq!(ask(&file, "3", "three").await, ["S", "1", "one", "2", "two", "3"]);
    let memory = ChatMemoryAdvisor::new(file.open().await);
    assert_eq!(memory.transcript(&key()).await.unwrap().len(), 6);
}

/// A process that ends in the middle of an answer leaves a turn that the next one closes.
#[tokio::test]
async fn law_m6_the_turn_after_a_lost_process_is_valid() {
    let file = File::new();
    ask(&file, "1", "one").await;
    let (client, _) = client(&file, Answer::new().text("so far").hang()).await;
    let mut turn = client.prompt().user("2").conversation("c").stream();
    while turn.next().await.unwrap().unwrap().text() != Some("so far") {}
    drop((turn, client));
    assert_eq!(ask(&file, "3", "three").await, ["S", "1", "one", "2", INTERRUPTED, "3"]);
    let memory = ChatMemoryAdvisor::new(file.open().await);
    let transcript = memory.transcript(&key()).await.unwrap();
    assert_eq!(transcript.iter().filter(|message| message.role() == Role::User).count(), 3);
}
