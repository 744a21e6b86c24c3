//! Submits turns, one at a time or twice at once, and reads a suspended one further.

use advisor_chain::memory::ForkPoint;
use advisor_tests::prelude::*;
use futures::future::join;

use crate::state_machine::operation::{How, Script, Stop, Submission, What};
use crate::state_machine::reading::{Over, Reading};
use crate::state_machine::reference::Expected;
use crate::state_machine::world::{Broken, Standing, World, key};

/// A turn that was submitted.
#[derive(Clone, Copy)]
struct Submitted {
    by: usize,
    /// Its number among those that were submitted.
    nth: usize,
}

impl World {
    pub(crate) async fn submit(&mut self, submission: Submission) -> Result<(), Broken> {
        let Submission { by, what, stop, fault } = submission;
        let (nth, fork_point) = self.choose(what);
        let submitted = Submitted { by, nth };
        if self.stands_outdated(nth) {
            return Ok(());
        }
        self.active[by] = true;
        let expected = self.expected_of(what, nth, fault.map(|(_, fault)| fault));
        let mut reading = Reading::new(self.turn(by, nth, fork_point), &self.leaves.steps, stop);
        if let Some((after, fault)) = fault {
            self.faults.fail_at(self.faults.operations() + after, fault);
        }
        let asked = self.leaves.seen.asked();
        self.leaves.seen.alone.store(self.standing.is_none(), Ordering::Relaxed);
        let over = self.read(&mut reading).await?;
        self.faults.clear_faults();
        // It may have been the one that was to give the lease back.
        self.is_held |= fault.is_some();
        expected.check(&over, self.leaves.seen.asked() - asked)?;
        self.is_over(submitted, reading, over, stop).await
    }

    /// The same turn from two processes, or twice from one, at once.
    pub(crate) async fn submit_twice(&mut self, by: [usize; 2], script: Script) -> Result<(), Broken> {
        self.finish_standing().await?;
        by.iter().for_each(|by| self.active[*by] = true);
        let (nth, _) = self.choose(What::New(script));
        let is_expected = matches!(self.expected(None, script), Expected::Answer);
        self.leaves.seen.alone.store(false, Ordering::Relaxed);
        let mut readings = by.map(|by| Reading::new(self.turn(by, nth, None), &self.leaves.steps, None));
        let [one, other] = &mut readings;
        let overs: [Over; 2] = join(one.read(), other.read()).await.into();
        let answered = overs.iter().filter(|over| matches!(over, Over::Completed(_))).count();
        let at_least = if by[0] == by[1] { 2 } else { 1 };
        if is_expected && answered < at_least {
            return Err(format!("a turn that was submitted twice came to {overs:?}"));
        }
        for ((by, reading), over) in by.into_iter().zip(readings).zip(overs) {
            self.is_over(Submitted { by, nth }, reading, over, None).await?;
        }
        Ok(())
    }

    /// Reads the suspended turn further.
    pub(crate) async fn go_on(&mut self, stop: Option<Stop>) -> Result<(), Broken> {
        let Some(mut standing) = self.standing.take() else { return Ok(()) };
        self.active[standing.by] = true;
        self.leaves.seen.alone.store(false, Ordering::Relaxed);
        standing.reading.run.stop_after(stop.map(|stop| stop.after));
        let over = standing.reading.read().await;
        let submitted = Submitted { by: standing.by, nth: standing.nth };
        self.is_over(submitted, standing.reading, over, stop).await
    }

    pub(crate) async fn finish_standing(&mut self) -> Result<(), Broken> {
        self.go_on(None).await
    }

    /// The number of the turn that is submitted, and where it branches off.
    fn choose(&mut self, what: What) -> (usize, Option<ForkPoint>) {
        let (number, log) = (self.told.turns.len(), &self.told.log);
        let (script, place) = match what {
            What::Again(nth) if number > 0 => return (nth % number, None),
            What::Again(_) => (Script::Plain, None),
            What::New(script) => (script, None),
            What::Before(nth, script) => {
                let mut turns: Vec<_> = log.iter().map(|entry| &entry.turn).collect();
                turns.dedup();
                let turn = turns.get(nth % turns.len().max(1)).copied();
                (script, turn.cloned().map(ForkPoint::Before))
            }
            What::After(entry, script) => {
                let tip = u64::try_from(entry % (log.len() + 1)).unwrap_or_default();
                (script, Some(ForkPoint::After(EntryId(tip))))
            }
        };
        (self.told.new_turn(script), place)
    }

    /// Returns whether this turn is suspended and its conversation was deleted. Submitted again, it would
    /// belong to two conversations.
    fn stands_outdated(&self, nth: usize) -> bool {
        let standing = self.standing.as_ref().filter(|standing| standing.nth == nth);
        standing.is_some_and(|standing| standing.reading.run.outdated_version().is_some())
    }

    fn expected_of(&self, what: What, nth: usize, fault: Option<StoreFault>) -> Expected {
        let turn = &self.told.turns[nth];
        let expected = self.expected(fault, turn.script);
        match (expected, what, &turn.answer) {
            (Expected::Answer, What::Again(_), Some(answer)) if self.told.is_on_path(turn) => {
                Expected::Same(answer.clone())
            }
            (Expected::Answer, What::Again(_), _) => Expected::AnswerOrRefusal,
            (expected, ..) => expected,
        }
    }

    /// Reads until the turn has ended. If it waits for the suspended turn, that turn is read to its end.
    async fn read(&mut self, reading: &mut Reading) -> Result<Over, Broken> {
        loop {
            match reading.read().await {
                Over::Waits if self.standing.is_some() => Box::pin(self.finish_standing()).await?,
                over => return Ok(over),
            }
        }
    }

    async fn is_over(
        &mut self,
        Submitted { by, nth }: Submitted,
        reading: Reading,
        over: Over,
        stop: Option<Stop>,
    ) -> Result<(), Broken> {
        match over {
            Over::Completed(text) => {
                let log = self.log_of(&key()).await?;
                // Of a conversation that was deleted behind its back nothing is left.
                let turn = &self.told.turns[nth];
                let is_there = log.iter().any(|entry| entry.turn == turn.id) || self.told.deletions == 0;
                if is_there && !turn.is_undone {
                    self.told.acknowledge(nth, &text)?;
                }
            }
            Over::Failed(_) => self.note_failure(by, nth, &reading, &over),
            Over::Ended => return Err(String::from("a turn ended with neither an answer nor an error")),
            Over::Waits => return Err(String::from("a turn waits for ever")),
            Over::Reached => {
                let how = stop.map_or(How::Close, |stop| stop.how);
                self.stop(Standing { by, nth, reading }, how).await?;
            }
        }
        Ok(())
    }

    async fn stop(&mut self, stopped: Standing, how: How) -> Result<(), Broken> {
        if how == How::Stand && self.standing.is_none() {
            self.standing = Some(stopped);
            return Ok(());
        }
        let by = stopped.by;
        self.is_held = true;
        self.note_stop(&stopped, how).await?;
        stopped.reading.drop_as(how).await;
        if how == How::Kill {
            if let Some(standing) = self.standing.take_if(|standing| standing.by == by) {
                standing.reading.drop_as(how).await;
            }
            self.restart(by);
        }
        Ok(())
    }
}
