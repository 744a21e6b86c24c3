//! The relay in Redis, against a real server, if there is one.
//!
//! `ADVISOR_REDIS_URL` names a server, and `ADVISOR_REDIS_CLUSTER_URL` a node that has all slots of a cluster. With
//! `ADVISOR_REQUIRE_SERVERS=1` the absence of either fails.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::Once;

use advisor_core::TurnId;
use advisor_server::{Begun, RedisRelay, RunState, ServerLimits, TurnRelay, TurnRun};
use advisor_testkit::{Answer, ScriptedModel};
use chat_memory_advisor::InMemoryStore;
use chat_memory_advisor::store::ConversationStore;
use chat_memory_redis::redis::cluster::ClusterClient;
use chat_memory_redis::redis::{AsyncConnectionConfig, Client, FromRedisValue, cmd};
use chat_memory_redis::{RedisServer, RedisStore};

use super::contract::{batch, keeps_the_contract, last, page, run_of};
use super::processes::{asking, joining, running};
use crate::setting::{LIMIT, Setting, rest_of, setting_over, text, until};

/// The variables of a child: the address of the server, and the prefix of the test.
const CHILD: [&str; 2] = ["ADVISOR_RELAY_CHILD_URL", "ADVISOR_RELAY_CHILD_PREFIX"];

/// A prefix of one test alone, on a server.
struct Place {
    url: String,
    prefix: String,
}

impl Place {
    /// A place on the server, or nothing where there is none.
    fn new() -> Option<Self> {
        static SAID: Once = Once::new();
        named("ADVISOR_REDIS_URL", &SAID).map(Self::at)
    }

    fn at(url: String) -> Self {
        Self { url, prefix: format!("test:{}", TurnId::random()) }
    }

    /// A separate connection, as each process has one.
    async fn server(&self) -> RedisServer {
        RedisServer::from_client(Client::open(&*self.url).unwrap(), &self.prefix).await.unwrap()
    }

    async fn relay(&self) -> RedisRelay {
        RedisRelay::from_server(self.server().await).with_timeout(LIMIT)
    }

    /// A process with a store and a relay over one connection.
    async fn process(&self, model: &ScriptedModel) -> Setting {
        let server = self.server().await;
        Self::process_over(RedisStore::from_server(server.clone()), server, model)
    }

    fn process_over(store: impl ConversationStore, server: RedisServer, model: &ScriptedModel) -> Setting {
        let Setting { server: chat, model } = setting_over(store, model.clone());
        // A busy machine may need long for an append.
        let mut limits = ServerLimits::default();
        limits.relay_timeout = LIMIT;
        let relay = RedisRelay::from_server(server).with_timeout(LIMIT);
        Setting { server: chat.with_relay(relay).with_limits(limits), model }
    }

    /// Runs a command outside the relay. `@` stands for the keys of conversation `c1`, without their last part.
    async fn run<T: FromRedisValue>(&self, command: &str) -> T {
        let command = command.replace('@', &format!("{}:{{default/c1}}:relay:", self.prefix));
        let mut words = command.split(' ');
        let mut command = cmd(words.next().unwrap());
        command.arg(words.collect::<Vec<_>>());
        let patient = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let client = Client::open(&*self.url).unwrap();
        let mut connection = client.get_multiplexed_async_connection_with_config(&patient).await.unwrap();
        command.query_async(&mut connection).await.unwrap()
    }

    async fn remove(self) {
        let keys: Vec<String> = self.run(&format!("KEYS {}:*", self.prefix)).await;
        for key in keys {
            self.run::<i64>(&format!("DEL {key}")).await;
        }
    }
}

fn named(variable: &str, said: &Once) -> Option<String> {
    let url = std::env::var(variable).ok().filter(|url| !url.is_empty());
    let required = std::env::var("ADVISOR_REQUIRE_SERVERS").is_ok_and(|required| required == "1");
    if url.is_none() {
        assert!(!required, "ADVISOR_REQUIRE_SERVERS=1, but {variable} names no server");
        // Not `eprintln!`, which the test harness keeps to itself when the test passes.
        said.call_once(|| drop(writeln!(std::io::stderr(), "left out: no Redis; name one in {variable}")));
    }
    url
}

#[tokio::test]
async fn redis_keeps_the_contract() {
    let Some(place) = Place::new() else { return };
    keeps_the_contract(&place.relay().await).await;
    place.remove().await;
}

/// All keys of a script are in one slot.
#[tokio::test]
async fn redis_cluster_keeps_the_contract() {
    static SAID: Once = Once::new();
    let Some(url) = named("ADVISOR_REDIS_CLUSTER_URL", &SAID) else { return };
    let place = Place::at(url);
    let client = ClusterClient::builder([&*place.url]).response_timeout(LIMIT).build().unwrap();
    let connection = client.get_async_connection().await.unwrap();
    let server = RedisServer::from_connection(connection, &place.prefix).await.unwrap();
    keeps_the_contract(&RedisRelay::from_server(server).with_timeout(LIMIT)).await;
    place.remove().await;
}

#[tokio::test]
async fn redis_keeps_no_key_without_expiry() {
    let Some(place) = Place::new() else { return };
    let (relay, run) = (place.relay().await, run_of("default", "c1", "t1", 9));
    let kept = i64::try_from(TurnRun::KEPT_TTL.as_millis()).unwrap();
    for step in ["begun", "appended", "ended"] {
        match step {
            "begun" => assert_eq!(relay.begin(&run).await.unwrap(), Begun::Owned),
            "appended" => drop(relay.append(&run, &batch(0, &["0"])).await.unwrap()),
            _ => drop(relay.append(&run, &last(1, &["1"])).await.unwrap()),
        }
        let keys: Vec<String> = place.run(&format!("KEYS {}:*", place.prefix)).await;
        let expected = [("begun", 4), ("appended", 5), ("ended", 3)];
        assert!(expected.contains(&(step, keys.len())), "{step}: {keys:?}");
        for key in keys {
            let left: i64 = place.run(&format!("PTTL {key}")).await;
            assert!((kept - 2_000..=kept).contains(&left), "{step}: {key} expires in {left} ms");
        }
    }
    place.remove().await;
}

/// The test removes the keys that the server would remove later, and lets an owner be old.
#[tokio::test]
async fn expired_keys_in_redis_are_a_dead_owner_and_an_unknown_turn() {
    let Some(place) = Place::new() else { return };
    let relay = place.relay().await;
    let (run, other) = (run_of("default", "c1", "t1", 9), run_of("default", "c1", "t1", 9));
    relay.begin(&run).await.unwrap();
    relay.append(&run, &batch(0, &["0"])).await.unwrap();
    place.run::<i64>("ZADD @owned XX 1 t1").await;
    assert_eq!(page(&relay, &run, 0).await.1, RunState::Interrupted);
    assert_eq!(relay.running(&run.conversation).await.unwrap(), []);
    assert_eq!(relay.begin(&other).await.unwrap(), Begun::Owned);
    assert_eq!(page(&relay, &other, 0).await, (vec![], RunState::Running));
    place.run::<i64>("DEL @t1:state @t1:items @begun @owned").await;
    assert_eq!(relay.read(&other.conversation, &other.turn, 0).await.unwrap(), None);
    // The list of the conversation's turns forgets those whose keys have expired.
    let lists = ["@begun", "@owned", "@turns"];
    for list in lists {
        place.run::<i64>(&format!("ZADD {list} 1 long-ago")).await;
    }
    relay.begin(&run).await.unwrap();
    for list in lists {
        assert_eq!(place.run::<Vec<String>>(&format!("ZRANGE {list} 0 -1")).await, ["t1"], "{list}");
    }
    relay.forget(&run.conversation).await.unwrap();
    assert_eq!(place.run::<Vec<String>>(&format!("KEYS {}:*", place.prefix)).await, [""; 0]);
    place.remove().await;
}

#[tokio::test]
async fn law_r3_errors_have_neither_address_nor_keys() {
    let address = "redis://canary:canary@127.0.0.1:1/";
    let error = RedisRelay::connect(address).await.unwrap_err();
    assert!(
        !advisor_core::text_with_sources(&error).contains("canary")
            && !format!("{error:?}").contains("canary")
    );
    let error = RedisRelay::connect("canary").await.unwrap_err();
    assert!(!advisor_core::text_with_sources(&error).contains("canary"), "{error:?}");
    let Some(place) = Place::new() else { return };
    let (relay, run) = (place.relay().await, run_of("default", "c1", "canary", 9));
    place.run::<()>("SET @canary:state x").await;
    let error = relay.begin(&run).await.unwrap_err();
    let shown = format!("{error:?} {} {relay:?}", advisor_core::text_with_sources(&error));
    assert!(shown.contains("WRONGTYPE") && !shown.contains("canary"), "{shown}");
    place.remove().await;
}

/// A second program runs the turn, until it is killed.
#[tokio::test]
async fn reader_over_redis_notices_a_killed_process() {
    let Some(place) = Place::new() else { return };
    // With a separate store, it does not wait for the lease of the killed process.
    let model = ScriptedModel::new([Answer::from_text("It is sunny.")]);
    let second = Place::process_over(InMemoryStore::new(), place.server().await, &model);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "relay::redis::the_child", "--nocapture", "--test-threads=1"])
        .envs(CHILD.into_iter().zip([&place.url, &place.prefix]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let waits =
        tokio::task::spawn_blocking(move || lines.any(|line| line.unwrap().contains("the turn runs")));
    assert!(tokio::time::timeout(LIMIT, waits).await.unwrap().unwrap());
    let (_, body) = until(second.send(joining(None)).await, "It is").await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(rest_of(body).await.contains("the answer broke off"));
    let again = text(second.post("/api/chat", &asking("t1")).await).await;
    assert!(again.contains("It is sunny."), "{again}");
    place.remove().await;
}

/// The killed process. It does nothing without an address.
#[tokio::test]
async fn the_child() {
    let [Ok(url), Ok(prefix)] = CHILD.map(std::env::var) else { return };
    let place = Place { url, prefix };
    let process = place.process(&ScriptedModel::new([Answer::new().text("It is").hang()])).await;
    let (_, _rest) = until(process.post("/api/chat", &asking("t1")).await, "It is").await;
    while running(&process).await != "t1" || place.run::<i64>("XLEN @t1:items").await < 3 {
        tokio::task::yield_now().await;
    }
    writeln!(std::io::stdout(), "the turn runs").unwrap();
    // A child whose parent was killed ends, too.
    let closed = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    drop(closed.await);
}
