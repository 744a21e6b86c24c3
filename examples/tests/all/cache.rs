//! The example of a cache, in an application that runs for long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use advisor_chain::{ChatClient, ChatOptions};
use advisor_examples::advisors::Cache;
use advisor_testkit::{Answer, ScriptedModel};

/// A cache that is asked for ever new things knows the last ones.
#[tokio::test]
async fn a_cache_is_bounded() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let model = ScriptedModel::from_fn(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Answer::from_text("Yes.")
    });
    let client = ChatClient::builder(model).advisor(Cache::default()).build().unwrap();
    for (number, times) in
        (0..200).map(|number| (number, number + 1)).chain([(199, 200), (100, 200), (99, 201)])
    {
        client.prompt().user(format!("Is {number} a number?")).call().await.unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), times, "{number}");
    }
    let other = ChatOptions::default().with_extra("seed", 1);
    for (options, times) in
        [(other.clone(), 202), (other, 202), (ChatOptions::default().with_extra("seed", 2), 203)]
    {
        client.prompt().user("Is 199 a number?").options(options).call().await.unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), times, "other options are another question");
    }
}
