//! Tests that the list has exactly the existing conversations, after a crash of any process at any command.

use advisor_core::TurnId;
use chat_memory_redis::{RedisServer, RedisStore};
use conversation_store::{ConversationStore, EntryId, Page, ReadRange, StoreError, Version};

use crate::stepping::Stepping;
use crate::support::{Place, key, said};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Before {
    Absent,
    There,
    /// Another process marked it and crashed.
    Marked,
    /// Another process deleted it and crashed before it removed the index entry.
    Deleted,
}

async fn prepare(store: &RedisStore, place: &Place, before: Before) {
    store.delete(&key("c")).await.unwrap();
    if before != Before::Absent {
        store.append(&key("c"), Version::EMPTY, said("earlier", 0, &["x"])).await.unwrap();
    }
    match before {
        Before::Marked => drop(place.run::<i64>("DEL @meta @log @turns @batches").await),
        Before::Deleted => {
            let (writer, stepping) = stepping(place).await;
            stepping.allow(2);
            let conversation = key("c");
            let mut deleting = writer.delete(&conversation);
            tokio::select! {
                biased;
                deleted = &mut deleting => panic!("{deleted:?}"),
                () = stepping.finished(2) => {}
            }
        }
        Before::Absent | Before::There => {}
    }
}

async fn stepping(place: &Place) -> (RedisStore, Stepping) {
    let stepping = Stepping::new(place.connection().await);
    stepping.allow(1);
    let store = RedisServer::from_connection(stepping.clone(), &place.prefix).await.unwrap();
    let store = RedisStore::from_server(store);
    stepping.finished(1).await;
    (store, stepping)
}

/// Checks that the list contains exactly the existing conversations.
async fn check(store: &RedisStore, what: &str) -> bool {
    let listed = store.list(&Page::first("default", 9)).await.unwrap();
    let there = store.load(&key("c"), ReadRange::LastEntries(0)).await.unwrap().version > Version::EMPTY;
    assert_eq!(listed, if there { vec![key("c")] } else { vec![] }, "{what}");
    there
}

/// Interleaves the commands of a creating and of a deleting process in every order.
#[tokio::test]
async fn making_and_deleting_at_once_hides_no_conversation() {
    let Some(place) = Place::new() else { return };
    let store = place.store().await;
    let ((maker, maker_steps), (deleter, deleter_steps)) = (stepping(&place).await, stepping(&place).await);
    let (mut made, mut unmade) = (0, 0);
    for before in [Before::Absent, Before::There, Before::Marked, Before::Deleted] {
        for order in 0..1_u32 << 7 {
            prepare(&store, &place, before).await;
            let what = format!("{before:?}, order {order:#b}");
            let making = maker.clone();
            let making = tokio::spawn(async move {
                making.append(&key("c"), Version::EMPTY, said("new", 0, &["y"])).await
            });
            let deleting = deleter.clone();
            let deleting = tokio::spawn(async move { deleting.delete(&key("c")).await });
            for step in 0..7 {
                let (steps, ended) = if order >> step & 1 == 1 {
                    (&maker_steps, making.is_finished())
                } else {
                    (&deleter_steps, deleting.is_finished())
                };
                if !ended {
                    steps
                        .step_unless_ended(|| {
                            if order >> step & 1 == 1 { making.is_finished() } else { deleting.is_finished() }
                        })
                        .await;
                }
            }
            maker_steps.allow(100);
            deleter_steps.allow(100);
            match making.await.unwrap() {
                Ok(version) => assert_eq!(version, Version(1), "{what}"),
                Err(error) => assert!(matches!(error, StoreError::Conflict { .. }), "{what}: {error:?}"),
            }
            deleting.await.unwrap().unwrap();
            maker_steps.reset();
            deleter_steps.reset();
            *(if check(&store, &what).await { &mut made } else { &mut unmade }) += 1;
        }
    }
    assert!(made > 0 && unmade > 0, "both outcomes are met");
    place.remove().await;
}

/// After a drop at any command the list is correct, and the operation can be repeated.
#[tokio::test]
async fn crash_at_any_command_leaves_correct_list() {
    let Some(place) = Place::new() else { return };
    let store = place.store().await;
    for before in [Before::Absent, Before::There, Before::Marked, Before::Deleted] {
        for commands in 0..4 {
            for deletes in [false, true] {
                prepare(&store, &place, before).await;
                let what = format!("{before:?}, {commands} commands, deletes: {deletes}");
                let (crashing, steps) = stepping(&place).await;
                steps.allow(commands);
                let conversation = key("c");
                if deletes {
                    tokio::select! {
                        biased;
                        _ = crashing.delete(&conversation) => {}
                        () = steps.finished(commands) => {}
                    }
                } else {
                    tokio::select! {
                        biased;
                        _ = crashing.append(&conversation, Version::EMPTY, said("new", 0, &["y"])) => {}
                        () = steps.finished(commands) => {}
                    }
                }
                let there = check(&store, &what).await;
                let again = store.append(&key("c"), Version::EMPTY, said("again", 0, &["z"])).await;
                assert_eq!(again.is_err(), there, "{what}: {again:?}");
                assert!(check(&store, &what).await);
                store.delete(&key("c")).await.unwrap();
                assert!(!check(&store, &what).await);
                let index = place.keys().await.into_iter().filter(|key| !key.ends_with(":void")).count();
                assert_eq!(index, 0, "{what}: something is left in the index");
            }
        }
    }
    place.remove().await;
}

#[tokio::test]
async fn refused_first_append_leaves_no_index_name() {
    let Some(place) = Place::new() else { return };
    let store = place.store().await;
    let batch = || said("t", 0, &["x"]);
    for refused in [batch().with_parent(EntryId(1)), batch().with_last_turn(TurnId::new("u").unwrap())] {
        store.append(&key("c"), Version::EMPTY, refused).await.unwrap_err();
        assert_eq!(place.keys().await, Vec::<String>::new());
    }
    store.append(&key("c"), Version::EMPTY, batch().with_parent(EntryId::BEGINNING)).await.unwrap();
    assert!(check(&store, "behind the beginning").await);
    place.remove().await;
}

#[tokio::test]
async fn long_lists_are_paged_and_skip_missing_conversations() {
    let Some(place) = Place::new() else { return };
    let store = place.store().await;
    let mut expected = Vec::new();
    for number in 0..700 {
        let name = key(&format!("c{number:04}"));
        store.append(&name, Version::EMPTY, said("t", 0, &["x"])).await.unwrap();
        if number % 3 == 0 {
            let part = format!("{}:{{default/{}}}", place.prefix, name.conversation());
            let keys = ["meta", "log", "turns", "batches"].map(|key| format!("{part}:{key}")).join(" ");
            place.run::<i64>(&format!("DEL {keys}")).await;
        } else {
            expected.push(name);
        }
    }
    assert_eq!(store.list(&Page::first("default", usize::MAX)).await.unwrap(), expected);
    let mut listed = Vec::new();
    let mut page = Page::first("default", 90);
    loop {
        let part = store.list(&page).await.unwrap();
        let Some(last) = part.last().cloned() else { break };
        assert!(part.len() == 90 || listed.len() + part.len() == expected.len(), "a page is short");
        listed.extend(part);
        page.after = Some(last);
    }
    assert_eq!(listed, expected);
    assert_eq!(store.list(&Page::first("default", 0)).await.unwrap(), []);
    place.remove().await;
}
