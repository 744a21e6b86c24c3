//! Checks the log, the transcripts and the next turn after every operation and at the end.

use advisor_chain::memory::repair;
use advisor_chain::memory::store::{export, import};
use advisor_tests::prelude::*;

use crate::state_machine::answers::words_of_user;
use crate::state_machine::leaves::Leaves;
use crate::state_machine::operation::{Script, Submission, What};
use crate::state_machine::steps::Steps;
use crate::state_machine::words::{of_log, of_messages};
use crate::state_machine::world::{Broken, World, elsewhere, key};

/// Checks that must hold after every operation.
impl World {
    pub(crate) async fn check(&mut self) -> Result<(), Broken> {
        let log = self.log_of(&key()).await?;
        if !log.starts_with(&self.told.log) {
            return Err(format!("M3: the log was {}, and is {}", of_log(&self.told.log), of_log(&log)));
        }
        let snapshot = self.leaves.store.load(&key(), ReadRange::All).await.unwrap();
        if snapshot.version.0 != log.len() as u64 {
            return Err(format!("M3: {} entries at version {}", log.len(), snapshot.version));
        }
        (self.told.log, self.told.path) = (log, snapshot.entries);
        self.check_turns()?;
        self.check_shown().await?;
        self.check_views().await?;
        if self.log_of(&elsewhere()).await? != self.told.elsewhere {
            return Err(String::from("M5: another conversation has changed"));
        }
        self.check_next_turn().await?;
        self.leaves.seen.problem().map_or(Ok(()), Err)
    }

    /// Finishes every suspended turn and lets every lease expire. Then checks that each process can run a turn.
    pub(crate) async fn check_end(&mut self) -> Result<(), Broken> {
        self.active = [false; 2];
        self.finish_standing().await?;
        self.check().await?;
        tokio::time::advance(Duration::from_secs(60)).await;
        self.is_held = false;
        for by in [0, 1, 0] {
            self.active = [false; 2];
            let what = What::New(Script::Tools);
            self.submit(Submission { by, what, stop: None, fault: None }).await?;
            self.check().await?;
        }
        Ok(())
    }

    /// The whole log of a conversation, which has no gaps.
    pub(crate) async fn log_of(&self, key: &ConversationKey) -> Result<Vec<Entry>, Broken> {
        let log = self.leaves.store.read(key, EntryId::BEGINNING, 1_000_000).await.unwrap();
        if !log.iter().map(|entry| entry.seq).eq(1..=log.len() as u64) {
            return Err(format!("M3: the log has gaps: {}", of_log(&log)));
        }
        Ok(log)
    }

    /// Checks that the log has all acknowledged answers. Each turn must be in one piece, which begins with its
    /// user message, once.
    fn check_turns(&self) -> Result<(), Broken> {
        let (log, path) = (&self.told.log, &self.told.path);
        for turn in &self.told.turns {
            if turn.answer.is_some() && !turn.is_answered_in(log) {
                return Err(format!(
                    "O6: {:?} was answered {:?}, not so in {}",
                    turn.said,
                    turn.answer,
                    of_log(log)
                ));
            }
            let own: Vec<_> = log.iter().filter(|entry| entry.turn == turn.id).collect();
            let messages = || own.iter().map(|entry| entry.kind.as_message());
            let is_input = |message: &Option<&Message>| {
                message.is_some_and(|message| message.role() == Role::User && message.text() == turn.said)
            };
            if !own.is_empty() && (!messages().next().is_some_and(|first| is_input(&first))) {
                return Err(format!("M3: {} was written without its beginning: {}", turn.id, of_log(log)));
            }
            if messages().filter(is_input).count() > 1 {
                return Err(format!("K4: the input of {} is stored twice: {}", turn.id, of_log(log)));
            }
        }
        let is_known = |entry: &&Entry| self.told.turns.iter().any(|turn| turn.id == entry.turn);
        if let Some(entry) = log.iter().find(|entry| !is_known(entry)) {
            return Err(format!(
                "M5: {} is of another conversation, or of one that was deleted: {}",
                entry.turn,
                of_log(log)
            ));
        }
        let mut turns: Vec<_> = path.iter().map(|entry| &entry.turn).collect();
        turns.dedup();
        let different: BTreeSet<_> = turns.iter().collect();
        if different.len() < turns.len() {
            return Err(format!("M3: turns are mixed: {}", of_log(path)));
        }
        Ok(())
    }

    /// Checks that the transcripts of the log and of each process are valid and contain all acknowledged
    /// answers.
    async fn check_views(&self) -> Result<(), Broken> {
        let mut views = vec![(String::from("the log"), repair(&self.told.path))];
        for (place, process) in self.processes.iter().enumerate() {
            let told = process.memory.transcript(&key()).await;
            let told = told.map_err(|error| format!("process {place} cannot read: {error:?}"))?;
            views.push((format!("process {place}"), told.iter().cloned().collect()));
        }
        for (who, told) in views {
            let defects = validate_transcript(&told);
            if !defects.is_empty() {
                return Err(format!("T1: {who} tells {}: {defects:?}", of_messages(&told)));
            }
            let mut answered = self.told.turns.iter().filter(|turn| self.told.is_on_path(turn));
            if let Some(lost) = answered.find(|turn| !turn.is_answered_for(&told)) {
                return Err(format!(
                    "O6: {who} does not tell of the answer to {:?}: {}",
                    lost.said,
                    of_messages(&told)
                ));
            }
        }
        Ok(())
    }

    /// If every process died now, the next turn would be valid: it is tried with a copy of the conversation.
    async fn check_next_turn(&self) -> Result<(), Broken> {
        let copy: Arc<dyn ConversationStore> = Arc::new(InMemoryStore::new());
        let lines: String = export(Arc::clone(&self.leaves.store), key()).try_collect().await.unwrap();
        import(&copy, lines.as_bytes(), None).await.unwrap();
        let copied = copy.read(&key(), EntryId::BEGINNING, 1_000_000).await.unwrap();
        if copied != self.told.log {
            return Err(format!("what was exported is {} when it is imported", of_log(&copied)));
        }
        for window in [Window::All, self.processes[0].window] {
            let leaves = Leaves { steps: Steps::default(), store: Arc::clone(&copy), seen: Arc::default() };
            leaves.seen.alone.store(true, Ordering::Relaxed);
            let memory = ChatMemoryAdvisor::new(Arc::clone(&copy));
            let client = leaves.client(self.setup.memory, memory, window);
            let said = words_of_user("c", 1_000_000, Script::Plain);
            let answered = client.prompt().user(said).conversation(key()).call().await;
            answered.map_err(|error| format!("M6: the next turn would fail: {error:?}"))?;
            leaves
                .seen
                .problem()
                .map_or(Ok(()), |problem| Err(format!("M6: in the next turn, {problem}")))?;
        }
        Ok(())
    }
}
