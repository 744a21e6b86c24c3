//! An ordinary program: a function and its caller. In `typed.rs`, a model calls the same function.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

#[derive(Debug)]
struct Forecast {
    city: String,
    degrees: Vec<i32>,
}

/// Tells the weather of the next days.
async fn weather(city: String, days: Option<u8>) -> Forecast {
    Forecast { city, degrees: vec![12; usize::from(days.unwrap_or(1))] }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let Forecast { city, degrees } = weather("Oslo".into(), Some(2)).await;
    println!("{city}: {degrees:?}");
}
