//! Several readers of one running turn.

use std::time::Duration;

use advisor_core::{ChatClient, Chunk, ConversationKey, ErrorKind, Message, OnDrop, Spawner, TurnStream};
use advisor_server::{KeptChunks, OnUnread, ReaderError, SharedTurn, TurnReader};
use advisor_testkit::{Answer, Gate, ScriptedModel};
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
use futures::{FutureExt, StreamExt};
use tokio::runtime::Handle;

const LIMIT: Duration = Duration::from_secs(20);

struct Setting {
    client: ChatClient,
    memory: ChatMemoryAdvisor,
    model: ScriptedModel,
}

fn setting(answers: impl IntoIterator<Item = Answer>) -> Setting {
    let (model, memory) = (ScriptedModel::new(answers), ChatMemoryAdvisor::new(InMemoryStore::new()));
    let client =
        ChatClient::builder(model.clone()).advisor(memory.clone()).spawner(spawner()).build().unwrap();
    Setting { client, memory, model }
}

impl Setting {
    fn turn(&self) -> TurnStream {
        self.client.prompt().user("How late is it?").conversation("c").stream()
    }

    async fn remembered(&self) -> Vec<String> {
        let transcript = self.memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        transcript.iter().map(Message::text).collect()
    }
}

fn spawner() -> Spawner {
    Spawner::tokio(Handle::current())
}

fn start(turn: TurnStream, on_unread: OnUnread) -> SharedTurn {
    SharedTurn::start(turn, &spawner(), on_unread, KeptChunks::default())
}

async fn read(reader: TurnReader) -> Vec<Result<Chunk, ReaderError>> {
    tokio::time::timeout(LIMIT, reader.collect()).await.unwrap()
}

async fn chunks(reader: TurnReader) -> Vec<Chunk> {
    read(reader).await.into_iter().map(Result::unwrap).collect()
}

async fn next(reader: &mut TurnReader) -> Option<Result<Chunk, ReaderError>> {
    tokio::time::timeout(LIMIT, reader.next()).await.unwrap()
}

fn answer() -> Answer {
    Answer::new().text("It ").text("is ").text("noon.").done()
}

#[tokio::test]
async fn readers_early_late_and_after_the_end_get_the_same() {
    let gate = Gate::new();
    let setting = setting([Answer::new().text("It ").gate(&gate).text("is noon.").done(), answer()]);
    let turn = start(setting.turn(), OnUnread::Continue);
    let mut early = turn.read();
    let mut first = vec![next(&mut early).await.unwrap().unwrap(), next(&mut early).await.unwrap().unwrap()];
    let late = turn.read();
    assert!(!turn.has_ended());
    gate.release();
    let (rest, late) = tokio::join!(chunks(early), chunks(late));
    first.extend(rest);
    assert_eq!(first, late);
    assert!(turn.has_ended() && turn.error().is_none());
    assert_eq!(chunks(turn.read()).await, first);
    assert_eq!(chunks(turn.observe_from(2)).await, first[2..]);
    assert_eq!(chunks(turn.observe_from(1_000)).await, []);
}

#[tokio::test]
async fn law_o3_completion_reaches_readers_after_memory() {
    let setting = setting([answer()]);
    let mut reader = start(setting.turn(), OnUnread::Continue).read();
    loop {
        if next(&mut reader).await.unwrap().unwrap().completed().is_some() {
            assert_eq!(setting.remembered().await, ["How late is it?", "It is noon."]);
            return;
        }
    }
}

#[tokio::test]
async fn turn_without_readers_continues() {
    let gate = Gate::new();
    let setting = setting([Answer::new().text("It ").gate(&gate).text("is noon.").done()]);
    let turn = start(setting.turn(), OnUnread::Continue);
    let mut reader = turn.read();
    next(&mut reader).await;
    drop(reader);
    gate.release();
    let all = chunks(turn.read()).await;
    assert!(all.last().unwrap().completed().is_some());
    assert_eq!(setting.remembered().await, ["How late is it?", "It is noon."]);
}

#[tokio::test]
async fn law_k2_unread_turn_is_cancelled_and_its_text_kept() {
    let setting = setting([Answer::new().text("It is").hang()]);
    let turn = start(setting.turn(), OnUnread::Cancel(OnDrop::KeepPartial));
    let (mut one, mut other) = (turn.read(), turn.read());
    while next(&mut one).await.unwrap().unwrap().text().is_none() {}
    next(&mut other).await;
    drop(one);
    assert!(!turn.has_ended() && !turn.is_abandoned(), "one reader is left");
    drop(other);
    assert!(turn.is_abandoned());
    let last = read(turn.read()).await.pop();
    let Some(Err(ReaderError::Turn(error))) = last else { panic!("{last:?}") };
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(turn.error().map(|error| error.kind()), Some(ErrorKind::Cancelled));
    assert!(turn.has_ended() && turn.is_abandoned());
    let remembered = setting.remembered().await;
    assert!(remembered.last().unwrap().starts_with("It is"), "{remembered:?}");
}

#[tokio::test]
async fn cancelled_turn_is_not_abandoned_by_its_reader() {
    let setting = setting([Answer::new().text("It is").hang()]);
    let turn = start(setting.turn(), OnUnread::Cancel(OnDrop::KeepPartial));
    let mut reader = turn.read();
    next(&mut reader).await;
    turn.handle().cancel(OnDrop::KeepPartial);
    drop(reader);
    turn.handle().settled().await;
    assert!(!turn.is_abandoned());
}

#[tokio::test]
async fn observer_neither_keeps_nor_cancels_a_turn() {
    let setting = setting([Answer::new().text("It is").hang()]);
    let turn = start(setting.turn(), OnUnread::Cancel(OnDrop::KeepPartial));
    let mut observer = turn.observe_from(0);
    while next(&mut observer).await.unwrap().unwrap().text().is_none() {}
    drop(turn.observe_from(0));
    assert!(!turn.has_ended(), "no reader has left");
    drop(turn.read());
    let last = read(observer).await.pop();
    let Some(Err(ReaderError::Turn(error))) = last else { panic!("{last:?}") };
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

#[tokio::test]
async fn handle_cancels_for_all_readers() {
    let setting = setting([Answer::new().text("It is").hang()]);
    let turn = start(setting.turn(), OnUnread::Continue);
    let mut readers = [turn.read(), turn.read()];
    for reader in &mut readers {
        next(reader).await;
    }
    turn.handle().cancel(OnDrop::Rollback);
    for reader in readers {
        assert!(matches!(read(reader).await.pop(), Some(Err(ReaderError::Turn(_)))));
    }
    assert_eq!(setting.remembered().await, [""; 0]);
}

#[tokio::test]
async fn error_of_the_turn_reaches_every_reader() {
    let setting = setting([]);
    let turn = start(setting.turn(), OnUnread::Continue);
    for reader in [turn.read(), turn.observe_from(7)] {
        assert!(matches!(read(reader).await.pop(), Some(Err(ReaderError::Turn(_)))));
    }
    assert_eq!(setting.model.calls(), 1);
}

#[tokio::test]
async fn law_r1_slow_reader_gets_error_and_delays_no_other() {
    let pieces = (0..40).fold(Answer::new(), |answer, _| answer.text("x").wait(tokio::task::yield_now()));
    let setting = setting([pieces.done()]);
    let turn = SharedTurn::start(
        setting.turn(),
        &spawner(),
        OnUnread::Continue,
        KeptChunks { chunks: 8, ..KeptChunks::default() },
    );
    let mut slow = turn.read();
    next(&mut slow).await;
    let mut fast = turn.observe_from(slow.position());
    while let Some(item) = next(&mut fast).await {
        item.unwrap();
    }
    let Some(Err(ReaderError::Behind { first })) = next(&mut slow).await else {
        panic!("the reader is behind")
    };
    assert!(next(&mut slow).await.is_none());
    assert_eq!(chunks(turn.observe_from(first)).await.len(), 8);
}

#[tokio::test]
async fn law_r1_kept_chunks_are_bounded_in_bytes() {
    let text = "x".repeat(10_000);
    let long = (0..9).fold(Answer::new(), |answer, _| answer.text(text.clone()));
    let setting = setting([long.done()]);
    let kept = KeptChunks { bytes: 25_000, ..KeptChunks::default() };
    let turn = SharedTurn::start(setting.turn(), &spawner(), OnUnread::Continue, kept);
    turn.handle().settled().await;
    let Some(Err(ReaderError::Behind { first })) = read(turn.read()).await.pop() else {
        panic!("the first chunks are kept")
    };
    let rest = chunks(turn.observe_from(first)).await;
    assert_eq!(rest.iter().filter_map(Chunk::text).map(str::len).sum::<usize>(), 20_000);
    // The whole answer is larger than the bound, and stays.
    assert_eq!(rest.last().and_then(Chunk::completed).map(|response| response.text().len()), Some(90_000));
}

#[tokio::test]
async fn readers_end_if_the_spawner_drops_the_turn() {
    let setting = setting([answer()]);
    let turn =
        SharedTurn::start(setting.turn(), &Spawner::new(drop), OnUnread::Continue, KeptChunks::default());
    let mut reader = turn.read();
    let Some(Some(Err(ReaderError::Turn(error)))) = reader.next().now_or_never() else {
        panic!("the turn ends")
    };
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}
