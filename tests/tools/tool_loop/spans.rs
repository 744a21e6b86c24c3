//! Tests of the nesting of a turn's spans.

use advisor_tests::prelude::*;
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::tool_loop::support::*;

/// Remembers `parent > child` of every span that opens.
#[derive(Clone, Default)]
struct Parents(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Parents {
    fn on_new_span(&self, _: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let parent = span.parent().map_or("-", |parent| parent.name());
        self.0.lock().unwrap().push(format!("{parent} > {}", span.name()));
    }
}

/// Model calls are in their round, rounds and tools in the turn, and the turn in the outer span.
/// A tool sees its span as the current one.
#[tokio::test]
async fn spans_stand_inside_one_another() {
    let parents = Parents::default();
    // With one subscriber alone, tests on other threads, which have none, decide what is worth a span.
    let _beside = tracing::Dispatch::new(tracing_subscriber::registry());
    let subscriber = tracing_subscriber::registry().with(parents.clone());
    let _installed = tracing::subscriber::set_default(subscriber);
    let look = FnTool::new(definition("look"), |_: Value| async {
        let current = tracing::Span::current().metadata().map_or("-", |metadata| metadata.name());
        Ok(current)
    });
    let model = ScriptedModel::new([
        Answer::from_calls([("c1", "look", "{}"), ("c2", "look", "{}")]),
        Answer::from_text("Done."),
    ]);
    let client = client(&model, ToolCallAdvisor::new()).tool(look).build().unwrap();
    let outer = tracing::info_span!("outer");
    let turn = client.prompt().user("go").stream();
    let run = tracing::Instrument::instrument(read(turn), outer).await;
    assert_eq!(
        *parents.0.lock().unwrap(),
        [
            "- > outer", "outer > turn", "turn > round", "round > model_call", "turn > tool_run",
            "turn > tool_run", "turn > round", "round > model_call",
        ]
    );
    let results =
        run.response().transcript().iter().filter_map(|message| Some(message.tool_result()?.text()));
    assert_eq!(results.collect::<Vec<_>>(), ["tool_run", "tool_run"]);
}
