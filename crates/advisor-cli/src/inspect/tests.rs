//! Tests of `inspect`.

use advisor_chain::{AdvisorChain, ChatClient, ChatRequest, from_fn};
use advisor_testkit::{Answer, Event, Journal, JournalAdvisor, JournalModel, ScriptedModel};
use serde_json::json;

use super::*;

/// Returns the events of a journal in JSON.
fn events(events: &serde_json::Value) -> Vec<Event> {
    let journal: Journal = serde_json::from_value(json!({"version": 1, "events": events})).unwrap();
    journal.events()
}

/// A turn with a tool, as the chat records it.
fn turn() -> Vec<Event> {
    events(&json!([
        {"label": "turn.start t1", "at_ms": 0},
        {"label": "advisor.enter tool-call", "at_ms": 0},
        {"label": "advisor.enter chat-memory", "at_ms": 1},
        {"label": "stored user", "at_ms": 2},
        {"label": "model.ask r1", "at_ms": 2},
        {"label": "model.first_chunk r1", "at_ms": 40},
        {"label": "model.end r1", "at_ms": 60, "fields": {"chunks": 4}},
        {"label": "stored assistant(c1)", "at_ms": 61},
        {"label": "advisor.completed chat-memory r1", "at_ms": 61, "fields": {"chunks": 4}},
        {"label": "usage r1", "at_ms": 61, "fields": {"input_tokens": 12, "output_tokens": 3}},
        {"label": "tool.start c1", "at_ms": 62, "fields": {"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}},
        {"label": "tool.end c1", "at_ms": 90, "fields": {"name": "weather", "is_error": true}},
        {"label": "model.drop r2", "at_ms": 95},
        {"label": "turn.failed timeout", "at_ms": 95},
        {"label": "something else", "fields": {"n": 1}},
    ]))
}

#[test]
fn text_has_a_column_for_each_lane() {
    let expected = "\
turns: 1, model calls: 1, tool runs: 1 (1 failed, 0 not started), tokens: 12 in and 3 out, first chunk after: 40 ms

      0 ms  ┬ · · · · · · caller         asks (turn t1)
      0 ms  │ ┬ · · · · · tool-call      enters
      1 ms  │ │ ┬ · · · · chat-memory    enters
      2 ms  │ │ │ · ● · · store          stored user
      2 ms  │ │ │ ┬ · · · model          is asked (r1)
     40 ms  │ │ │ ● · · · model          sends the first chunk (r1)
     60 ms  │ │ │ ┴ · · · model          ends its answer (r1)
     61 ms  │ │ │ · ● · · store          stored assistant(c1)
     61 ms  │ │ ┴ · · · · chat-memory    completes (r1)
     61 ms  ● │ · · · · · caller         sees usage of r1: 12 in, 3 out
     62 ms  │ │ · · · ┬ · tools          c1 starts: weather {\"city\":\"Oslo\"}
     90 ms  │ │ · · · ✗ · tools          c1 fails: weather
     95 ms  │ │ · ✗ · · · model          stops (r2)
     95 ms  ✗ │ · · · · · caller         sees the turn fail: timeout
            · │ · · · · ● other          something else {\"n\":1}
";
    assert_eq!(text::render(&Timeline::new(&turn(), 100)), expected);
}

/// The output does not grow with events and advisors.
#[test]
fn many_advisors_share_a_lane() {
    let entered = |number: usize| json!({"label": format!("advisor.enter a{number}"), "at_ms": 0});
    let timeline = Timeline::new(&events(&(0..100).map(entered).collect()), 100);
    assert_eq!(timeline.lanes.len(), 41);
    let shown = text::render(&timeline);
    assert!(shown.contains("a99"), "{shown}");
    assert!(timeline.rows().all(|(_, cells)| cells.len() == 41));
}

#[test]
fn mermaid_has_calls_inwards_and_completions_outwards() {
    let shown = mermaid::render(&Timeline::new(&turn()[..9], 100));
    let expected = "\
sequenceDiagram
    participant L0 as caller
    participant L1 as tool-call
    participant L2 as chat-memory
    participant L3 as model
    participant L4 as store
    Note over L0: 0 ms#58; asks (turn t1)
    L0->>L1: 0 ms#58; enters
    L1->>L2: 1 ms#58; enters
    Note over L4: 2 ms#58; stored user
    L2->>L3: 2 ms#58; is asked (r1)
    Note over L3: 40 ms#58; sends the first chunk (r1)
    L3-->>L2: 60 ms#58; ends its answer (r1)
    Note over L4: 61 ms#58; stored assistant(c1)
    L2-->>L1: 61 ms#58; completes (r1)
";
    assert_eq!(shown, expected);
}

#[test]
fn html_is_one_page_without_scripts() {
    let page = html::render(&Timeline::new(&turn(), 100));
    assert!(page.starts_with("<!doctype html>") && page.contains("default-src 'none'"));
    assert_eq!(page.matches("<tr").count(), 1 + turn().len());
    for absent in ["<script", "http://", "https://", "<link", "<img", "url("] {
        assert!(!page.contains(absent), "{absent}");
    }
    assert!(page.contains("weather {&quot;city&quot;:&quot;Oslo&quot;}"), "{page}");
}

#[test]
fn content_cannot_leave_its_place() {
    let hostile = "<script>alert('1')</script>\x1b[2J;\n%%{init}%% & \"x\"\u{202e} end";
    let events = events(&json!([
        {"label": format!("advisor.enter {hostile}")},
        {"label": hostile, "fields": {"a": hostile}},
        {"label": "tool.start c1", "fields": {"name": hostile, "arguments": hostile}},
    ]));
    let timeline = Timeline::new(&events, 10);
    let (text, diagram, page) =
        (text::render(&timeline), mermaid::render(&timeline), html::render(&timeline));
    for shown in [&text, &diagram, &page] {
        assert!(!shown.contains(['\x1b', '\u{202e}']), "{shown:?}");
    }
    assert_eq!(text.lines().count(), 2 + 3, "{text}");
    assert!(!page.contains("<script") && !page.contains("'1'") && !page.contains("\"x\""), "{page}");
    assert_eq!(diagram.lines().count(), 1 + 3 + 3, "{diagram}");
    assert!(!diagram.contains(['<', '%', '{', '"', '\'']), "{diagram}");
}

#[test]
fn a_long_journal_is_cut_with_a_note() {
    let many = (0..50).map(|number| json!({"label": format!("tool.start c{number}")})).collect();
    let many = events(&many);
    let timeline = Timeline::new(&many, 20);
    let note = "30 more events are left out; --events N shows more";
    let (text, diagram, page) =
        (text::render(&timeline), mermaid::render(&timeline), html::render(&timeline));
    assert!(
        text.ends_with(&format!("\n{note}\n")) && text.starts_with("turns: 0, model calls: 0, tool runs: 50")
    );
    assert_eq!(text.matches("starts").count(), 20);
    assert!(page.contains(note) && diagram.ends_with("Note over L0: 30 more events are left out\n"));
    let many = (0..1_500)
        .map(|number| json!({"label": format!("tool.start a-long-id-of-a-call-{number}")}))
        .collect();
    let diagram = mermaid::render(&Timeline::new(&events(&many), 2_000));
    assert!(diagram.len() < 50_000, "Mermaid renders no larger diagrams");
    assert!(diagram.ends_with("more events are left out\n"), "{diagram}");
    let empty = Timeline::new(&[], 20);
    assert!(text::render(&empty).ends_with("The journal has no events.\n"));
    assert_eq!(mermaid::render(&empty), "sequenceDiagram\n");
}

#[tokio::test]
async fn a_recorded_chain_has_its_lanes_in_order() {
    let pass = || {
        from_fn("pass through", |request: ChatRequest, next: AdvisorChain| async move {
            next.next_stream(request).await
        })
    };
    let journal = Journal::new();
    let model = JournalModel::new(ScriptedModel::new([Answer::from_text("Hi")]), &journal);
    let client = ChatClient::builder(model).advisor(JournalAdvisor::new(pass(), &journal)).build().unwrap();
    client.prompt().user("go").call().await.unwrap();
    let timeline = Timeline::new(&journal.events(), 10);
    let names: Vec<_> = timeline.lanes.iter().map(event::Lane::name).collect();
    assert_eq!(names, ["pass through", "model"]);
    let steps: Vec<_> = timeline.moments.iter().map(|moment| moment.text.as_str()).collect();
    let expected = [
        "enters", "is asked (r1)", "sends the first chunk (r1)", "passes the first chunk (r1)",
        "ends its answer (r1)", "completes (r1)",
    ];
    assert_eq!(steps, expected);
}
