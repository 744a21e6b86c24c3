//! Explores holders that acquire the lease of a conversation, hold it, lose it and write with it.

use advisor_chain::memory::store::{BatchKey, FencingToken, NewEntry};
use advisor_tests::prelude::*;
use shuttle::future::{spawn, yield_now};
use tokio::time::Instant;

use crate::schedules::check::{key, log_of, turn_id};
use crate::schedules::explore;
use crate::schedules::time::Time;

const HOLDERS: usize = 3;
const LEASE: Duration = Duration::from_millis(60);

/// The holder of the lease. It sees each answer at the moment in which the store gives it.
#[derive(Clone, Default)]
struct Witness(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    /// The last token that was handed out, and until when it holds.
    last: Option<(FencingToken, Instant)>,
}

impl Witness {
    fn acquired(&self, outcome: &Result<FencingToken, StoreError>, takeover_from: Option<FencingToken>) {
        let mut held = self.0.lock().unwrap();
        let holder = held.last.filter(|(_, until)| *until > Instant::now()).map(|(token, _)| token);
        match outcome {
            Ok(token) => {
                assert!(held.last.is_none_or(|(last, _)| last < *token), "a token is higher than all before");
                assert!(holder.is_none() || holder == takeover_from, "M3: there is one holder at a time");
                held.last = Some((*token, Instant::now() + LEASE));
            }
            Err(StoreError::Locked { token, .. }) => assert_eq!(Some(*token), holder, "somebody holds it"),
            Err(error) => panic!("{error}"),
        }
    }

    fn renewed(&self, token: FencingToken, outcome: &Result<(), StoreError>) {
        self.may_write(token, outcome);
        if outcome.is_ok() {
            self.0.lock().unwrap().last = Some((token, Instant::now() + LEASE));
        }
    }

    fn released(&self, token: FencingToken) {
        let mut held = self.0.lock().unwrap();
        if held.last.is_some_and(|(last, _)| last == token) {
            held.last = Some((token, Instant::now()));
        }
    }

    /// Checks that only the holder of the last fencing token may write.
    fn may_write<T>(&self, token: FencingToken, outcome: &Result<T, StoreError>) {
        let is_last = self.0.lock().unwrap().last.is_some_and(|(last, _)| last == token);
        match outcome {
            Ok(_) => assert!(is_last, "M3: who has lost the right has written"),
            Err(StoreError::Fenced) => assert!(!is_last, "who has the right is refused"),
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Wants the lease, takes it from another holder now and then, writes, and gives it back. The store answers at once, so
/// that the witness sees each answer before anyone else does anything.
async fn hold(store: InMemoryStore, witness: Witness, holder: usize) {
    let leases = store.leases().unwrap();
    let mut takeover_from = None;
    for number in 0..4 {
        yield_now().await;
        let acquired = leases.acquire(&key(), &turn_id(holder), LEASE, takeover_from, false).await;
        witness.acquired(&acquired, takeover_from);
        takeover_from = None;
        match acquired {
            Ok(token) => write(&store, &witness, holder, number, token).await,
            Err(StoreError::Locked { token, .. }) if number % 2 == 1 => takeover_from = Some(token),
            Err(_) => {}
        }
    }
}

async fn write(store: &InMemoryStore, witness: &Witness, holder: usize, number: u32, token: FencingToken) {
    let leases = store.leases().unwrap();
    for part in ["a", "b"] {
        yield_now().await;
        let expected = store.load(&key(), ReadRange::All).await.unwrap().version;
        yield_now().await;
        let said = EntryKind::Message(Message::user(token.0.to_string()));
        let entries = vec![NewEntry::new(turn_id(holder), said)];
        let batch = Batch::new(BatchKey::new(turn_id(holder), number, part), entries).with_token(token);
        witness.may_write(token, &store.append(&key(), expected, batch).await);
        yield_now().await;
        witness.renewed(token, &leases.renew(&key(), token, LEASE).await);
    }
    yield_now().await;
    leases.release(&key(), token).await.unwrap();
    witness.released(token);
}

async fn holders_at_once(time: Time) {
    let (store, witness) = (InMemoryStore::new().with_leases(), Witness::default());
    let passing = time.pass();
    let holders = (0..HOLDERS).map(|holder| spawn(hold(store.clone(), witness.clone(), holder)));
    for holder in holders.collect::<Vec<_>>() {
        holder.await.unwrap();
    }
    time.stop();
    passing.await.unwrap();
    let log = log_of(&store).await;
    let tokens: Vec<u64> =
        log.iter().map(|entry| entry.kind.as_message().unwrap().text().parse().unwrap()).collect();
    assert!(tokens.is_sorted(), "M3: {tokens:?}");
}

#[test]
fn law_m3_k4_one_holder_at_a_time_writes() {
    explore("holders", holders_at_once);
}
