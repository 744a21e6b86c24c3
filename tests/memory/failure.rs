//! Tests of a turn whose store never answers. What else a store may do at each operation is tested at every await point, in the
//! program `exhaustive`.

use advisor_testkit::FaultStore;
use advisor_tests::prelude::*;
use advisor_tests::tools::tool;
use tokio::time::Instant;

/// The time limit of a turn covers the appends of a memory inside the loop. It does not cover records between
/// rounds.
#[tokio::test(start_paused = true)]
async fn turn_time_bounds_store_that_hangs_in_round() {
    let time = Duration::from_secs(5);
    // The conversation is loaded, the input stored, then each answer; in between the results, by the loop.
    for (rounds, operations) in [(0, &[0, 1, 2][..]), (3, &[0, 1, 2, 4, 6, 8])] {
        for operation in operations {
            for fault in [StoreFault::HangBefore, StoreFault::HangAfter] {
                let calls =
                    (1..=rounds).map(|round| Answer::new().call(&format!("c{round}"), "work", "{}").done());
                let model = ScriptedModel::new(calls.chain([Answer::from_text("Done.")]));
                let store = FaultStore::new(InMemoryStore::new());
                store.fail_at(*operation, fault);
                let limits = ToolLimits { turn_timeout: Some(time), ..ToolLimits::default() };
                let client = ChatClient::builder(model)
                    .advisor(ToolCallAdvisor::builder().limits(limits).build().unwrap())
                    .advisor(ChatMemoryAdvisor::new(store))
                    .tool(tool("work", "worked"))
                    .build()
                    .unwrap();
                let begun = Instant::now();
                let response = client.prompt().user("go").conversation("c").call().await.unwrap();
                let case = format!("{rounds} rounds, operation {operation}, {fault:?}");
                assert_eq!(response.finish.reason, FinishReason::Limit(Limit::Time(5000)), "{case}");
                assert_eq!(begun.elapsed(), time, "{case}");
                assert_eq!(validate_transcript(&response.transcript), [], "{case}");
            }
        }
    }
}
