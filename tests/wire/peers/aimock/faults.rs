//! Faults that the server injects: refusals, broken answers, broken connections.

use advisor_chain::openai::backoff::Backoff;
use advisor_tests::prelude::*;

use super::{Aimock, Api, Sending};
use crate::peers::chain::Chain;

#[tokio::test]
async fn each_api_asks_again_after_rate_limit() {
    // The server asks for a second, which is waited.
    let retries = Backoff::default();
    let sending = Sending { retries, ..Sending::default() };
    for api in Api::ALL {
        let Some(aimock) = Aimock::new() else { return };
        let chain = Chain::new(aimock.model(api, sending), ChatOptions::default(), Phase::Round);
        let seen = chain.turn("Answer at the second attempt.").await;
        assert_eq!(seen.response().text(), "Second.", "{api:?}");
        let requests = aimock.requests().await;
        let statuses: Vec<_> = requests.iter().map(|request| &request["response"]["status"]).collect();
        assert_eq!(statuses, [429, 200], "{api:?}");
        assert_eq!(requests[0]["body"], requests[1]["body"], "{api:?}: the same request again");
    }
}

#[tokio::test]
async fn each_api_reports_fault_by_its_kind() {
    let faults = [
        ("ratelimit", ErrorKind::RateLimited { retry_after: Some(Duration::from_secs(1)) }),
        ("drop", ErrorKind::Provider { status: Some(500) }),
        ("malformed", ErrorKind::Protocol { position: Some(0) }),
        ("disconnect", ErrorKind::Connection),
    ];
    for api in Api::ALL {
        for (fault, kind) in faults {
            let Some(aimock) = Aimock::new() else { return };
            let sending = Sending { fault: Some(fault), ..Sending::default() };
            let chain = Chain::new(aimock.model(api, sending), ChatOptions::default(), Phase::Round);
            let error = chain.turn("How is Paris now?").await.error.unwrap();
            assert_eq!(error.kind(), kind, "{api:?}, {fault}: {error}");
        }
    }
}

#[tokio::test]
async fn each_api_runs_no_call_of_broken_answer_and_goes_on() {
    for api in Api::ALL {
        for memory_in in PLACES {
            let Some(aimock) = Aimock::new() else { return };
            let chain = Chain::new(aimock.model(api, Sending::default()), ChatOptions::default(), memory_in);
            let broken = chain.turn("Break off after a call.").await;
            let error = broken.error.unwrap();
            assert_eq!(error.kind(), ErrorKind::Connection, "{api:?}: {error}");
            assert!(
                broken.opened.first().is_some_and(|name| name == "get_weather"),
                "{api:?}: the call came"
            );
            assert_eq!((broken.results.len(), chain.most_running()), (0, 0), "{api:?}: it did not run");

            let next = chain.turn("What went wrong?").await;
            assert_eq!(next.response().text(), "The connection broke.", "{api:?}");
            let requests = aimock.requests().await;
            assert_eq!(requests[0]["response"]["interrupted"], true, "{api:?}: {}", requests[0]);
            let users: Vec<&Value> =
                messages(&requests[1], "user").map(|message| &message["content"]).collect();
            assert_eq!(users, ["Break off after a call.", "What went wrong?"], "{api:?}");
            assert_eq!(messages(&requests[1], "tool").count(), 0, "{api:?}: {}", requests[1]);
        }
    }
}

fn messages<'a>(request: &'a Value, role: &'a str) -> impl Iterator<Item = &'a Value> {
    let messages = request["body"]["messages"].as_array().into_iter().flatten();
    messages.filter(move |message| message["role"] == role)
}
