use std::rc::Rc;

use tool_call_advisor::tool;

/// Tells the weather.
#[tool(crate = "tool_call_advisor")]
async fn weather() -> usize {
    let shared = Rc::new(1);
    std::future::ready(()).await;
    Rc::strong_count(&shared)
}

fn main() {}
