//! Tests of the guarantees that types give to the compiler.

use std::sync::Arc;

use advisor_core::{
    AdvisorChain, ChatClient, ChatModel, ChatRequest, ChunkStream, Error, Prompt, StreamAdvisor, Tool, Turn,
    TurnHandle, TurnRecorder, TurnStream,
};

fn assert_send<T: Send + 'static>() {}
fn assert_shared<T: Send + Sync + 'static>() {}

#[test]
fn everything_can_cross_threads() {
    assert_send::<ChunkStream>();
    assert_send::<TurnStream>();
    assert_send::<Prompt>();
    assert_shared::<AdvisorChain>();
    assert_shared::<ChatClient>();
    assert_shared::<ChatRequest>();
    assert_shared::<Error>();
    assert_shared::<Turn>();
    assert_shared::<TurnHandle>();
}

#[test]
fn the_traits_make_objects() {
    assert_shared::<Arc<dyn ChatModel>>();
    assert_shared::<Arc<dyn StreamAdvisor>>();
    assert_shared::<Arc<dyn Tool>>();
    assert_shared::<Arc<dyn TurnRecorder>>();
}

#[test]
fn chunks_stay_small() {
    // A chunk is moved once per layer; the large ones are behind a pointer.
    assert!(size_of::<advisor_core::Chunk>() <= 48, "{}", size_of::<advisor_core::Chunk>());
    assert!(size_of::<advisor_core::Delta>() <= 64, "{}", size_of::<advisor_core::Delta>());
}
