//! The clause that a chunk costs no allocation.

use advisor_core::{AdvisorChain, ChatClient, FinishReason};
use futures::StreamExt;

use super::reading::{Reader, request};
use super::subject::{Clause, Subject};
use advisor_testkit::{Answer, ScriptedModel};

/// Texts that grow with the answer double their memory a few times for each thousand chunks.
const GROWTH: u64 = 9;

const CHEAP: Clause = Clause {
    law: "law R4",
    rule: "an advisor allocates nothing for each chunk",
    remedy: "look at chunks by reference, and keep buffers for the next chunk; otherwise allow more with `at_most`",
};

/// An answer of more chunks costs no more allocations than without the advisor, apart from `per_chunk` for each chunk.
///
/// `count` runs the given work once and returns the number of its allocations in the current thread.
/// [`advisor_allocations!`](crate::advisor_allocations!) passes the counter of the crate `allocation-counter`.
pub fn law_r4_chunks_cost_no_allocation(
    subject: &Subject,
    per_chunk: u64,
    count: &mut dyn FnMut(&mut dyn FnMut()) -> u64,
) {
    for reader in Reader::ALL {
        let mut per_thousand = |chain: fn(&Subject, ScriptedModel) -> AdvisorChain| {
            let mut of = |words| allocations(subject, &chain(subject, model(words)), reader, count);
            let (fewer, more) = (of(2000), of(3000));
            more.saturating_sub(fewer)
        };
        let with = per_thousand(|subject, model| subject.chain(model));
        let without = per_thousand(|_, model| bare(model));
        let added = with.saturating_sub(without);
        subject.breaks_if(added > per_chunk * 1000 + GROWTH, CHEAP, || {
            format!(
                "{added} allocations for a thousand chunks, {per_chunk} allowed for each, read as {reader:?}"
            )
        });
    }
}

/// Returns the number of allocations of an answer.
fn allocations(
    subject: &Subject,
    chain: &AdvisorChain,
    reader: Reader,
    count: &mut dyn FnMut(&mut dyn FnMut()) -> u64,
) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let mut request = Some(request(subject, "one"));
    count(&mut || {
        let Some(request) = request.take() else { return };
        runtime.block_on(reader.open(chain, request).for_each(|item| {
            drop(item.expect("the model does not fail"));
            std::future::ready(())
        }));
    })
}

fn bare(model: ScriptedModel) -> AdvisorChain {
    ChatClient::builder(model).build().expect("a chain of a model alone").chain().clone()
}

/// Returns a model that sends a number of short pieces of text, all of which are ready at once.
fn model(words: usize) -> ScriptedModel {
    let answer = (0..words).fold(Answer::new(), |answer, _| answer.text("word "));
    ScriptedModel::new([answer.finish(FinishReason::Stop)])
}

/// Counts the allocations of an advisor for each chunk (law R4), in one test.
///
/// The expression creates the advisor. `at_most` allows a number of allocations for each chunk; without it, none. The
/// crate that uses the macro needs `allocation-counter` among its development dependencies. That crate replaces the
/// global allocator of the test program, so it is not a dependency of the testkit.
///
/// # Example
/// ```
/// use advisor_core::{AdvisorChain, ChatRequest, StreamAdvisor, from_fn};
///
/// fn looks() -> impl StreamAdvisor {
///     from_fn("looks", |request: ChatRequest, next: AdvisorChain| async move {
///         Ok(next.next_stream(request).await?.inspect_chunks(|_| {}))
///     })
/// }
///
/// mod allocations {
///     advisor_conformance::advisor_allocations!(super::looks());
/// }
///
/// mod allocations_of_one_that_copies {
///     advisor_conformance::advisor_allocations!(super::looks(), at_most 2);
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! advisor_allocations {
    ($make_advisor:expr $(, at_most $per_chunk:expr)? $(,)?) => {
        #[test]
        fn law_r4_chunks_cost_no_allocation() {
            let subject = $crate::advisor::Subject::new(|| $make_advisor);
            let per_chunk: u64 = 0 $(+ $per_chunk)?;
            let mut count = |work: &mut dyn FnMut()| ::allocation_counter::measure(|| work()).count_total;
            $crate::advisor::law_r4_chunks_cost_no_allocation(&subject, per_chunk, &mut count);
        }
    };
}
