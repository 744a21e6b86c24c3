//! `Case`, `Setup` and `Operation`: a setup with operations on it, and the strategies that choose them.

use std::fmt;

use advisor_tests::prelude::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// A case: the setup, and the operations on it.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) setup: Setup,
    pub(crate) operations: Vec<Operation>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    /// Inside the loop, in [`Phase::Round`], or outside it, in [`Phase::Turn`].
    pub(crate) memory: Phase,
    pub(crate) on_busy: OnBusy,
    /// Whether the store grants leases.
    pub(crate) leases: bool,
}

/// An operation on the one conversation. `by` is one of the two processes that share its store.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation {
    Submit(Submission),
    /// A new turn is submitted twice at once.
    Twice {
        by: [usize; 2],
        script: Script,
    },
    /// The suspended turn is read further.
    GoOn(Option<Stop>),
    Window {
        by: usize,
        window: Window,
    },
    /// A process writes the ends of its dropped turns, ends, and starts again.
    Restart {
        by: usize,
    },
    /// A process is killed while it does nothing.
    Kill {
        by: usize,
    },
    Delete,
    /// The conversation is exported, deleted, and imported again.
    Move,
    /// A turn of another conversation.
    Elsewhere {
        by: usize,
    },
    /// Time passes until every lease that is not renewed has expired.
    Wait,
}

/// A turn is submitted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Submission {
    pub(crate) by: usize,
    pub(crate) what: What,
    pub(crate) stop: Option<Stop>,
    /// The number of store operations after which one fails, and the fault.
    pub(crate) fault: Option<(usize, StoreFault)>,
}

/// The submitted turn. Numbers count modulo the existing items; without any, the turn is a new one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum What {
    New(Script),
    /// The turn that was submitted as this one, once more.
    Again(usize),
    /// A new turn in the place of that one.
    Before(usize, Script),
    /// A new turn behind this entry.
    After(usize, Script),
}

/// The answers of the model in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    Plain,
    /// Two rounds of two calls at a time, then the answer.
    Tools,
    /// The results of two calls are the answer.
    Direct,
    /// A tool fails, then the answer.
    Fails,
    /// The connection breaks after some text, every time.
    Breaks,
}

/// The turn is read until it has passed this many steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop {
    pub(crate) after: usize,
    pub(crate) how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// It is dropped; the process writes its end later.
    Close,
    /// It is dropped, and its end is written at once.
    CloseAtOnce,
    Rollback,
    /// The turn continues without its reader.
    Finish,
    /// Its process is killed.
    Kill,
    /// The turn is suspended until it is read further. Only one turn is suspended at a time; another one is
    /// dropped.
    Stand,
}

pub(crate) fn any_case(leases: bool, longest: usize) -> impl Strategy<Value = Case> {
    let memory = prop_oneof![Just(Phase::Round), Just(Phase::Turn)];
    let on_busy = prop_oneof![Just(OnBusy::Reject), Just(OnBusy::Queue), Just(OnBusy::InterruptPrevious)];
    let leases = if leases { any::<bool>().boxed() } else { Just(false).boxed() };
    let setup =
        (memory, on_busy, leases).prop_map(|(memory, on_busy, leases)| Setup { memory, on_busy, leases });
    (setup, vec(any_operation(), 1..longest)).prop_map(|(setup, operations)| Case { setup, operations })
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let by = || 0..2_usize;
    prop_oneof![
        12 => any_submission().prop_map(Operation::Submit),
        1 => ([by(), by()], any_script()).prop_map(|(by, script)| Operation::Twice { by, script }),
        4 => any_stop().prop_map(Operation::GoOn),
        1 => (by(), any_window()).prop_map(|(by, window)| Operation::Window { by, window }),
        1 => by().prop_map(|by| Operation::Restart { by }),
        1 => by().prop_map(|by| Operation::Kill { by }),
        1 => Just(Operation::Delete),
        1 => Just(Operation::Move),
        1 => by().prop_map(|by| Operation::Elsewhere { by }),
        1 => Just(Operation::Wait),
    ]
}

fn any_submission() -> impl Strategy<Value = Submission> {
    let fault = prop_oneof![
        6 => Just(None),
        1 => (0..12_usize, any_fault()).prop_map(Some),
    ];
    let parts = (0..2_usize, any_what(), any_stop(), fault);
    parts.prop_map(|(by, what, stop, fault)| Submission { by, what, stop, fault })
}

fn any_what() -> impl Strategy<Value = What> {
    prop_oneof![
        6 => any_script().prop_map(What::New),
        3 => (0..6_usize).prop_map(What::Again),
        1 => (0..6_usize, any_script()).prop_map(|(nth, script)| What::Before(nth, script)),
        1 => (0..30_usize, any_script()).prop_map(|(entry, script)| What::After(entry, script)),
    ]
}

fn any_script() -> impl Strategy<Value = Script> {
    prop_oneof![
        4 => Just(Script::Plain),
        4 => Just(Script::Tools),
        1 => Just(Script::Direct),
        1 => Just(Script::Fails),
        1 => Just(Script::Breaks),
    ]
}

fn any_stop() -> impl Strategy<Value = Option<Stop>> {
    let how = prop_oneof![
        2 => Just(How::Close),
        1 => Just(How::CloseAtOnce),
        2 => Just(How::Rollback),
        1 => Just(How::Finish),
        2 => Just(How::Kill),
        3 => Just(How::Stand),
    ];
    let after = prop_oneof![2 => 0..16_usize, 1 => 0..60_usize];
    prop_oneof![1 => Just(None), 1 => (after, how).prop_map(|(after, how)| Some(Stop { after, how }))]
}

fn any_fault() -> impl Strategy<Value = StoreFault> {
    prop_oneof![
        Just(StoreFault::Unavailable),
        Just(StoreFault::AnswerLost),
        Just(StoreFault::Conflict),
        Just(StoreFault::HangBefore),
        Just(StoreFault::HangAfter),
    ]
}

fn any_window() -> impl Strategy<Value = Window> {
    prop_oneof![
        Just(Window::All),
        (0..9_usize).prop_map(Window::Messages),
        (0..4_usize).prop_map(Window::Turns),
        (0..80_usize).prop_map(Window::Tokens),
    ]
}

/// One operation to a line.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.setup)?;
        let mut operations = self.operations.iter().enumerate();
        operations.try_for_each(|(place, operation)| writeln!(f, "  {place}: {operation:?}"))
    }
}
