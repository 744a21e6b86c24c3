//! Telemetry: the spans of a turn with the names of OpenTelemetry's conventions, printed as they end. Any exporter can
//! take the place of `Printed`. For a collector, `advisor_chain::otel::Otlp` has all of it.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;

use advisor_chain::messages::Delta;
use advisor_chain::otel::{self, GenAiExporter};
use advisor_chain::{FinishReason, client, tool};
use advisor_testkit::{Answer, ScriptedModel};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// An exporter that prints spans.
#[derive(Debug)]
struct Printed;

impl SpanExporter for Printed {
    async fn export(&self, spans: Vec<SpanData>) -> OTelSdkResult {
        for span in spans {
            println!("{}", span.name);
            for attribute in span.attributes {
                println!("    {} = {}", attribute.key, attribute.value);
            }
        }
        Ok(())
    }
}

/// Tells the time.
#[tool]
fn time() -> &'static str {
    "12:00"
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let exporter = GenAiExporter::new(Printed);
    let tracers = SdkTracerProvider::builder().with_simple_exporter(exporter).build();
    tracing_subscriber::registry().with(otel::layer(&tracers)).init();

    let origin = || Delta::origin(Some("r1".into()), Some("small-2026".into()));
    let model = ScriptedModel::new([
        Answer::new().delta(origin()).call("c1", "time", "{}").usage(40, 8).finish(FinishReason::ToolCalls),
        Answer::new().delta(origin()).text("It is noon.").usage(60, 6).finish(FinishReason::Stop),
    ]);
    let client = client(model).tool(time_tool()).build()?;
    client.prompt().user("How late is it?").conversation("c1").call().await?;
    Ok(())
}
