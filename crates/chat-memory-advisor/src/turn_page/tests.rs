//! Tests of `advisor::turn_page`.

use advisor_core::{FinishReason, TurnEnd};
use conversation_store::{Batch, BatchKey, ConversationStore, EntryKind, InMemoryStore, NewEntry, last_end};
use proptest::prelude::*;

use super::*;
use crate::tests::{
    answer, any_log, calls, client_side_end, completed, interrupted, log, result, rolled_back, turn, user,
    words,
};
use crate::transcript::repair::last_with_messages;
use crate::turn::client_side::client_side_calls_of;

fn key() -> ConversationKey {
    ConversationKey::new("c").unwrap()
}

/// Stores a log whose branches begin at these positions, each with the entry that it follows.
async fn stored(log: &[Entry], forks: &[(usize, u64)]) -> ChatMemoryAdvisor {
    let store = InMemoryStore::new();
    let begins = [(0, None)].into_iter().chain(forks.iter().map(|(at, parent)| (*at, Some(*parent))));
    let ends = forks.iter().map(|(at, _)| *at).chain([log.len()]);
    for ((from, parent), to) in begins.zip(ends) {
        let new = log[from..to].iter().map(|entry| NewEntry::new(entry.turn.clone(), entry.kind.clone()));
        let batch = Batch::new(BatchKey::new(turn("setup"), 0, from.to_string()), new.collect());
        let batch = batch.with_parent(parent.map(EntryId));
        store.append(&key(), Version::EMPTY.after(from), batch).await.unwrap();
    }
    ChatMemoryAdvisor::new(store)
}

/// Returns the pages of a conversation, oldest first.
async fn pages(memory: &ChatMemoryAdvisor, tip: Option<EntryId>, limit: usize) -> Vec<TurnPage> {
    let limit = NonZeroUsize::new(limit).unwrap();
    let mut pages = vec![memory.turns(&key(), tip, limit).await.unwrap()];
    while let Some(tip) = pages[0].before {
        let page = memory.turns(&key(), Some(tip), limit).await.unwrap();
        assert!(page.before < Some(tip), "each page begins earlier");
        pages.insert(0, page);
    }
    pages
}

/// Returns the pages of one turn each, as words: `|` separates pages, `/` turns.
async fn shown(turns: &[(&str, Vec<EntryKind>)], limit: usize) -> String {
    let memory = stored(&log(turns), &[]).await;
    let of_page = |page: TurnPage| {
        let turns = page.turns.iter().map(|of| format!("{}: {}", of.turn, words(&of.messages)));
        turns.collect::<Vec<_>>().join(" / ")
    };
    pages(&memory, None, limit).await.into_iter().map(of_page).collect::<Vec<_>>().join(" | ")
}

fn plain(name: &'static str) -> (&'static str, Vec<EntryKind>) {
    (name, vec![user(name).into(), answer(&name.to_uppercase()).into(), completed()])
}

#[tokio::test]
async fn page_has_the_last_turns_and_their_ids() {
    let turns = ["a", "b", "c"].map(plain);
    assert_eq!(shown(&turns, 1).await, "a: u:a a:A | b: u:b a:B | c: u:c a:C");
    assert_eq!(shown(&turns, 2).await, "a: u:a a:A | b: u:b a:B / c: u:c a:C");
    assert_eq!(shown(&turns, 9).await, "a: u:a a:A / b: u:b a:B / c: u:c a:C");
    assert_eq!(shown(&[], 1).await, "");
}

#[tokio::test]
async fn turns_that_answer_calls_are_not_separated() {
    let asking = |name| (name, vec![user(name).into(), calls(&["1", "2"]).into(), client_side_end()]);
    let answering = |name| (name, vec![result("1").into(), answer("ok").into(), completed()]);
    let turns = [plain("a"), asking("b"), answering("c"), plain("d")];
    let together = "b: u:b a(1,2) / c: r1 r2! a:ok";
    assert_eq!(shown(&turns, 1).await, format!("a: u:a a:A | {together} | d: u:d a:D"));
    assert_eq!(shown(&turns, 2).await, format!("a: u:a a:A | {together} | d: u:d a:D"));
    assert_eq!(shown(&turns, 3).await, format!("a: u:a a:A | {together} / d: u:d a:D"));
    // An empty answer is no turn of a page.
    let silent = ("d", vec![answer(" ").into(), completed()]);
    let turns = [plain("a"), asking("b"), answering("c"), silent];
    assert_eq!(shown(&turns, 1).await, format!("a: u:a a:A | {together}"));
    // A result without a call is left out, and its turn stands alone.
    let stray = [plain("a"), plain("b"), ("c", vec![result("1").into(), user("v").into()])];
    assert_eq!(shown(&stray, 1).await, "a: u:a a:A | b: u:b a:B | c: u:v a:[interrupted]");
}

/// The texts about such calls would not be true: nobody has decided that they do not run.
#[tokio::test]
async fn calls_that_wait_have_no_result_yet() {
    let asking =
        |more: Vec<EntryKind>| ("b", [vec![user("b").into(), calls(&["1", "2", "3"]).into()], more].concat());
    let waiting = || asking(vec![result("2").into(), client_side_end()]);
    let undone = ("c", vec![user("x").into(), answer("y").into(), rolled_back()]);
    for turns in [vec![plain("a"), waiting()], vec![plain("a"), waiting(), undone]] {
        assert_eq!(shown(&turns, 1).await, "a: u:a a:A | b: u:b a(1,2,3) r2");
    }
    // So it is if the page is asked to end with the last entry, but the conversation may continue without results.
    let memory = stored(&log(&[plain("a"), waiting()]), &[]).await;
    let page = memory.turns(&key(), Some(EntryId(7)), NonZeroUsize::MIN).await.unwrap();
    assert_eq!(words(&page.turns[0].messages), "u:b a(1,2,3) r2");
    let next = shown(&[waiting(), plain("c")], 1).await;
    assert!(next.starts_with("b: u:b a(1,2,3) r1! r2 r3! a:"), "{next}");
    let memory = stored(&log(&[waiting(), plain("c")]), &[(4, 0)]).await;
    let page = memory.turns(&key(), Some(EntryId(4)), NonZeroUsize::MIN).await.unwrap();
    let branch = words(&page.turns[0].messages);
    assert!(branch.starts_with("u:b a(1,2,3) r1! r2 r3! a:"), "{branch}");
    // They must not run, or may have run.
    let cut = FinishReason::Length;
    for end in [EntryKind::TurnEnded(TurnEnd::Completed(cut)), interrupted("")] {
        let closed = shown(&[asking(vec![end])], 1).await;
        assert!(closed.starts_with("b: u:b a(1,2,3) r1! r2! r3! a:"), "{closed}");
    }
}

/// A display needs to know what memory has added for the model.
#[tokio::test]
async fn turn_has_its_end_and_names_an_added_answer() {
    let turns = [
        plain("a"),
        ("b", vec![user("b").into(), interrupted("half")]),
        ("c", vec![user("c").into(), completed()]),
        ("d", vec![user("d").into(), calls(&["1"]).into(), client_side_end()]),
    ];
    let mut log = log(&turns);
    log.iter_mut().for_each(|entry| entry.round = Some(4));
    let snapshot = Snapshot::from_log(&log, ReadRange::All);
    let page = TurnPage::new(snapshot, (&[], &[]), NonZeroUsize::MAX);
    let shown: Vec<_> = page.turns.iter().map(|of| (of.has_added_answer, of.last_round)).collect();
    assert_eq!(shown, [(false, Some(4)), (true, None), (true, None), (false, Some(4))]);
    let ends: Vec<_> = page.turns.iter().filter_map(|of| of.end.clone()).map(EntryKind::TurnEnded).collect();
    assert_eq!(ends, [completed(), interrupted("half"), completed(), client_side_end()]);
}

/// A display tells calls that were answered from those that ended with their turn, also if the ids repeat.
#[tokio::test]
async fn turn_names_results_of_the_turn_before() {
    let asked = vec![user("a").into(), calls(&["1"]).into(), result("1").into()];
    let asking =
        [asked, vec![calls(&["1", "2", "3"]).into(), result("2").into(), client_side_end()]].concat();
    let answering = vec![result("1").into(), answer("ok").into(), completed()];
    let memory = stored(&log(&[("a", asking), ("b", answering), plain("c")]), &[]).await;
    let page = memory.turns(&key(), None, NonZeroUsize::new(9).unwrap()).await.unwrap();
    let shown: Vec<_> =
        page.turns.iter().map(|of| (words(&of.messages), words(&of.earlier_results))).collect();
    let of = |messages: &str, earlier: &str| (messages.to_owned(), earlier.to_owned());
    let turns = [of("u:a a(1) r1 a(1,2,3)", ""), of("r1 r2 r3! a:ok", "r2"), of("u:c a:C", "")];
    assert_eq!(shown, turns);
}

#[tokio::test]
async fn page_can_be_shortened_at_its_beginning() {
    let asking = ("b", vec![user("b").into(), calls(&["1"]).into(), client_side_end()]);
    let answering = ("c", vec![result("1").into(), answer("ok").into(), completed()]);
    let memory = stored(&log(&[plain("a"), asking, answering, plain("d")]), &[]).await;
    let whole = memory.turns(&key(), None, NonZeroUsize::new(9).unwrap()).await.unwrap();
    for (refused, kept, asked) in [
        ("", "a b c d", "d c b a"),
        ("a", "b c d", "d c b a"),
        ("b", "d", "d c b"),
        ("c", "d", "d c"),
        ("d", "d", "d"),
    ] {
        let mut seen = Vec::new();
        let page = whole.clone().keep_newest_while(|of| {
            seen.push(of.turn.to_string());
            of.turn.as_str() != refused
        });
        let names: Vec<_> = page.turns.iter().map(|of| of.turn.as_str()).collect();
        assert_eq!((names.join(" ").as_str(), seen.join(" ").as_str()), (kept, asked), "without {refused}");
        let mut turns = page.turns;
        if let Some(tip) = page.before {
            let before = memory.turns(&key(), Some(tip), NonZeroUsize::new(9).unwrap()).await.unwrap();
            turns.splice(0..0, before.turns);
        }
        assert_eq!(turns, whole.turns, "without {refused}");
    }
    // The newest turn is kept with the one whose call it answers.
    let joined = memory.turns(&key(), Some(EntryId(9)), NonZeroUsize::new(9).unwrap()).await.unwrap();
    let joined = joined.keep_newest_while(|_| false);
    assert_eq!((joined.turns.len(), joined.before), (2, Some(EntryId(3))));
}

#[tokio::test]
async fn page_ends_with_any_entry() {
    let memory = stored(&log(&["a", "b", "c"].map(plain)), &[]).await;
    for (tip, shown) in [(5, "u:b a:B"), (4, "u:b a:[interrupted]"), (3, "u:a a:A"), (0, "")] {
        let page = memory.turns(&key(), Some(EntryId(tip)), NonZeroUsize::MIN).await.unwrap();
        assert_eq!(words(page.turns.iter().flat_map(|turn| &turn.messages)), shown, "to {tip}");
    }
    let beyond = memory.turns(&key(), Some(EntryId(10)), NonZeroUsize::MIN).await.unwrap_err();
    assert_eq!(beyond.kind(), advisor_core::ErrorKind::Configuration);
}

#[tokio::test]
async fn unfinished_end_belongs_to_newest_page() {
    let mut turns = ["a", "b"].map(plain);
    turns[0].1.pop();
    turns[1].1.truncate(1);
    let memory = stored(&log(&turns), &[]).await;
    for name in ["a", "b"] {
        let stopped = UnfinishedTurn::new(turn(name), None, Vec::new());
        let end = TurnEnd::Interrupted { partial: "so far".into() };
        memory.settings().registry.register(&key(), UnfinishedTurn { end, ..stopped });
    }
    let shown: Vec<_> = pages(&memory, None, 1).await.into_iter().flat_map(|page| page.turns).collect();
    assert_eq!(words(&shown[0].messages), "u:a a:A");
    assert_eq!(words(&shown[1].messages), "u:b a:so far [interrupted]");
    let branch = pages(&memory, Some(EntryId(3)), 1).await.pop().unwrap();
    assert_eq!(words(&branch.turns[0].messages), "u:b a:[interrupted]", "a branch that cuts the turn");
    let undone = UnfinishedTurn::new(turn("b"), None, Vec::new());
    let end = TurnEnd::RolledBack;
    memory.settings().registry.register(&key(), UnfinishedTurn { end, ..undone });
    let shown: Vec<_> = pages(&memory, None, 1).await.into_iter().flat_map(|page| page.turns).collect();
    assert_eq!(shown.len(), 1, "a turn that is to be rolled back is not shown");
}

/// Generates a log whose branches begin at some positions, each with the entry that it follows.
fn any_branches() -> impl Strategy<Value = (Vec<Entry>, Vec<(usize, u64)>)> {
    (any_log(), prop::collection::btree_map(1..40_usize, any::<prop::sample::Index>(), 0..3)).prop_map(
        |(log, forks)| {
            let forks = forks.into_iter().filter(|(at, _)| *at < log.len());
            let forks = forks.map(|(at, parent)| (at, parent.index(at + 1) as u64)).collect();
            (log, forks)
        },
    )
}

/// Removes the error results and the sentence that a transcript has for calls that still wait.
async fn leave_waiting(
    memory: &ChatMemoryAdvisor,
    tip: Option<EntryId>,
    whole: Vec<Message>,
) -> Vec<Message> {
    let snapshot = match tip {
        None => memory.store().load(&key(), ReadRange::All).await.unwrap(),
        Some(tip) => memory.store().load_branch(&key(), tip, ReadRange::All).await.unwrap(),
    };
    let is_newest = snapshot.entries.last().is_some_and(|last| Version(last.seq) == snapshot.version);
    let kept =
        snapshot.entries.chunk_by(same_turn).filter(|turn| last_end(turn) != Some(&TurnEnd::RolledBack));
    let mut answers = kept.flatten().filter_map(|entry| entry.kind.as_message());
    let last = answers.rfind(|message| message.role() == Role::Assistant && !message.is_ephemeral());
    // Behind an empty answer, a transcript has no open call.
    let may_wait = is_newest && last.is_some_and(|last| !last.is_empty_answer());
    let (waiting, mut shown) =
        (last_with_messages(&snapshot.entries).map(client_side_calls_of).unwrap_or_default(), whole);
    if waiting.is_empty() || !may_wait {
        return shown;
    }
    assert!(shown.pop().is_some_and(|sentence| sentence.tool_calls().next().is_none()));
    for open in waiting {
        let is_its = |message: &Message| {
            message.tool_result().is_some_and(|result| result.is_error && result.call_id == open.call.id)
        };
        shown.remove(shown.iter().rposition(is_its).unwrap());
    }
    shown
}

proptest! {
    #[test]
    fn pages_are_the_whole_transcript((log, forks) in any_branches(), limit in 1..5_usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let memory = stored(&log, &forks).await;
            let mut tips = vec![None];
            tips.extend(memory.store().branches(&key()).await.unwrap().into_iter().map(Some));
            for tip in tips {
                let whole = match tip {
                    None => memory.transcript(&key()).await.unwrap().iter().cloned().collect(),
                    Some(tip) => {
                        let branch = memory.store().load_branch(&key(), tip, ReadRange::All).await.unwrap();
                        crate::repair(&branch.entries)
                    }
                };
                let pages = pages(&memory, tip, limit).await;
                for page in &pages[usize::from(pages.len() > 1)..] {
                    assert!(!page.turns.is_empty() || whole.is_empty());
                }
                let turns = pages.into_iter().flat_map(|page| page.turns);
                let shown: Vec<_> = turns.flat_map(|turn| turn.messages).collect();
                let whole = leave_waiting(&memory, tip, whole).await;
                assert_eq!(shown, whole, "{} and {}", words(&shown), words(&whole));
            }
        });
    }
}
