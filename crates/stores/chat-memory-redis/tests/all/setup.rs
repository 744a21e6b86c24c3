//! Tests of opening a store, and of refusals to open it.

use std::error::Error;

use chat_memory_redis::redis::Client;
use chat_memory_redis::redis::aio::ConnectionManager;
use chat_memory_redis::{RedisServer, RedisStore, SetupError};
use conversation_store::{ConversationStore, ReadRange, Version};

use crate::support::{Place, key, said};

#[tokio::test]
async fn prefixes_of_one_server_share_nothing() {
    let (Some(place), Some(other)) = (Place::new(), Place::new()) else { return };
    let (one, two) = (place.store().await, other.store().await);
    one.append(&key("c"), Version::EMPTY, said("t", 0, &["x"])).await.unwrap();
    assert_eq!(two.load(&key("c"), ReadRange::All).await.unwrap().version, Version::EMPTY);
    two.delete(&key("c")).await.unwrap();
    assert_eq!(one.load(&key("c"), ReadRange::All).await.unwrap().version, Version(1));
    place.remove().await;
    other.remove().await;
}

#[tokio::test]
async fn a_connection_of_the_callers_is_used() {
    let Some(place) = Place::new() else { return };
    let manager = ConnectionManager::new(Client::open(place.url.as_str()).unwrap()).await.unwrap();
    let store = RedisServer::from_connection(manager, &place.prefix).await.unwrap();
    let store = RedisStore::from_server(store);
    let version = store.append(&key("c"), Version::EMPTY, said("t", 0, &["x"])).await.unwrap();
    assert_eq!(place.store().await.load(&key("c"), ReadRange::All).await.unwrap().version, version);
    place.remove().await;
}

#[tokio::test]
async fn unusable_addresses_are_refused_without_being_quoted() {
    for address in [
        "",
        "hunter2",
        "http://u:hunter2@localhost/",
        "redis://u:hunter2@localhost:99999/",
        "redis://u:hunter2@localhost/x",
    ] {
        let refused = RedisStore::connect(address).await.unwrap_err();
        assert!(matches!(refused, SetupError::Address), "{refused:?}");
        assert_quiet(&refused);
    }
    // Nobody listens on port 1.
    let nobody = RedisStore::connect("redis://u:hunter2@127.0.0.1:1/").await.unwrap_err();
    assert!(matches!(nobody, SetupError::Store(_)), "{nobody:?}");
    assert_quiet(&nobody);
}

#[cfg(not(feature = "native-tls"))]
#[tokio::test]
async fn tls_address_is_refused_without_tls_support() {
    for address in ["rediss://u:hunter2@localhost/", "valkeys://u:hunter2@localhost/"] {
        let tls = RedisStore::connect(address).await.unwrap_err();
        assert!(matches!(tls, SetupError::NeedsTls), "{tls:?}");
        assert_quiet(&tls);
    }
}

#[tokio::test]
async fn store_and_its_errors_hide_password() {
    let Some(place) = Place::new() else { return };
    let store = place.store().await;
    let shown = format!("{store:?}");
    assert!(!shown.contains("127.0.0.1") && shown.contains(&place.prefix), "{shown}");
    // A user that does not exist.
    let url = place.url.replace("redis://", "redis://somebody:hunter2@");
    let refused = RedisServer::from_client(Client::open(url).unwrap(), &place.prefix).await.unwrap_err();
    assert!(matches!(refused, SetupError::Store(_)), "{refused:?}");
    assert!(format!("{refused:?}").contains("retryable: false"), "{refused:?}");
    assert_quiet(&refused);
    place.remove().await;
}

fn assert_quiet(error: &SetupError) {
    let mut shown = format!("{error:?}");
    let mut source: Option<&dyn Error> = Some(error);
    while let Some(error) = source {
        shown += &format!("{error} {error:?}");
        source = error.source();
    }
    assert!(!shown.contains("hun") && !shown.contains("ter2") && !shown.contains("127.0"), "{shown}");
}
