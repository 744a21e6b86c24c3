//! Connections that are given up, and a runtime that is missing.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use advisor_core::ErrorKind;
use tokio::process::Command;
use tokio::runtime::Runtime;
use tools_mcp::McpServer;

fn silent() -> McpServer {
    McpServer::from_command(|| {
        let mut command = Command::new("sleep");
        command.arg("60");
        command
    })
}

/// The process is killed by the runtime, wherever the future is dropped.
#[test]
fn connection_in_the_making_is_dropped_anywhere() {
    let runtime = Runtime::new().unwrap();
    let mut connecting = Box::pin(silent().connect());
    runtime.block_on(async {
        assert!(futures::poll!(connecting.as_mut()).is_pending());
        tokio::task::yield_now().await;
    });
    drop(connecting);
}

#[test]
fn missing_runtime_is_an_error() {
    let mut context = Context::from_waker(Waker::noop());
    let connected = pin!(silent().connect()).poll(&mut context);
    let Poll::Ready(Err(error)) = connected else { panic!("there is no runtime to wait for") };
    assert_eq!(error.kind(), ErrorKind::Configuration);
}
