//! The smallest sequences that showed defects, which are mended.

use advisor_tests::prelude::*;

use crate::state_machine::in_memory;
use crate::state_machine::operation::{Case, How, Operation, Script, Setup, Stop, Submission, What};

const NEW: What = What::New(Script::Plain);

/// The number of steps after which the input is stored and the model is about to answer.
const ASKED: usize = 4;

fn submit(by: usize, what: What, stop: Option<(usize, How)>) -> Operation {
    let stop = stop.map(|(after, how)| Stop { after, how });
    Operation::Submit(Submission { by, what, stop, fault: None })
}

/// Checks the sequence with memory in both places.
fn try_sequence(operations: &[Operation]) {
    try_with(OnBusy::Reject, false, operations);
}

/// The same in a store with leases, where a turn interrupts the one before.
fn try_with_leases(operations: &[Operation]) {
    try_with(OnBusy::InterruptPrevious, true, operations);
}

fn try_with(on_busy: OnBusy, leases: bool, operations: &[Operation]) {
    for memory in PLACES {
        let case = Case { setup: Setup { memory, on_busy, leases }, operations: operations.to_vec() };
        in_memory(&case).unwrap_or_else(|broken| panic!("{broken}\n{case}"));
    }
}

#[test]
fn turn_of_deleted_conversation_writes_nothing_into_next() {
    let operations = [
        submit(0, NEW, Some((ASKED, How::Stand))),
        Operation::Delete,
        submit(1, NEW, Some((ASKED, How::Kill))),
        Operation::GoOn(None),
    ];
    try_sequence(&operations);
}

/// The dead process has the lease of the suspended turn, so this turn may leave no trace.
#[test]
fn conversation_survives_process_death_before_closing_previous_turn() {
    for after in 1..=ASKED {
        try_with_leases(&[
            submit(0, What::New(Script::Breaks), Some((7, How::Stand))),
            submit(1, NEW, Some((after, How::Close))),
            Operation::Restart { by: 0 },
            submit(1, NEW, None),
        ]);
    }
}

#[test]
fn rollback_does_not_hide_answer_of_other_process() {
    let operations = [submit(0, NEW, Some((ASKED, How::Rollback))), submit(1, What::Again(0), None)];
    try_sequence(&operations);
}

#[test]
fn shown_text_is_told_while_the_turn_begins_again() {
    for after in 0..=ASKED {
        let shown = submit(0, NEW, Some((ASKED + 1, How::Close)));
        try_sequence(&[shown, submit(0, What::Again(0), Some((after, How::Stand)))]);
    }
}

#[test]
fn rollback_of_resubmitted_turn_does_not_hide_answer() {
    let operations = [
        submit(0, NEW, None),
        Operation::Window { by: 0, window: Window::Messages(0) },
        submit(0, What::Again(0), Some((2, How::Rollback))),
    ];
    try_sequence(&operations);
}

#[test]
fn imported_turn_behind_window_returns_same_answer() {
    let operations = [
        Operation::Window { by: 0, window: Window::Messages(0) },
        submit(0, NEW, None),
        Operation::Move,
        submit(0, What::Again(0), None),
    ];
    try_sequence(&operations);
}

#[test]
fn repeated_undone_tool_answer_stays_undone() {
    for answered in 17..=18 {
        let undone = submit(0, What::New(Script::Direct), Some((answered, How::Rollback)));
        try_sequence(&[undone, submit(1, What::Again(0), None)]);
    }
}

#[test]
fn undone_turn_stays_undone_in_next_conversation() {
    for after in 7..=11 {
        try_with_leases(&[
            submit(1, NEW, Some((0, How::Stand))),
            submit(0, What::Again(0), Some((after, How::Rollback))),
            Operation::Delete,
            submit(1, What::Again(0), None),
        ]);
    }
}
