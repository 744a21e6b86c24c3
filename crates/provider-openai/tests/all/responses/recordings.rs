//! Recorded streams over a connection.

use advisor_test_support::recordings;

use crate::responses::model;

#[tokio::test]
async fn law_s5_every_recording_over_http_at_any_split() {
    let recordings = recordings::all("openai-responses");
    recordings::assert_replays(&recordings, |_, server| model(server)).await;
}
