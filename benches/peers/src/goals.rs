//! `Goals`: the bounds of measured figures, and whether each was reached.

use std::fmt;

use crate::figures::number;

/// The goals, and whether each was reached.
#[derive(Default)]
pub(crate) struct Goals(Vec<Goal>);

struct Goal {
    what: String,
    bound: String,
    figure: String,
    reached: bool,
}

impl Goals {
    pub(crate) fn at_most(&mut self, what: &str, bound: f64, figure: f64) {
        self.push(what, "≤", bound, figure, figure <= bound);
    }

    pub(crate) fn at_least(&mut self, what: &str, bound: f64, figure: f64) {
        self.push(what, "≥", bound, figure, figure >= bound);
    }

    fn push(&mut self, what: &str, sign: &str, bound: f64, figure: f64, reached: bool) {
        let bound = format!("{sign} {}", number(bound));
        self.0.push(Goal { what: what.to_owned(), bound, figure: number(figure), reached });
    }
}

impl fmt::Display for Goals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n## Goals\n\n| what | goal | measured | |\n| --- | ---: | ---: | --- |")?;
        for Goal { what, bound, figure, reached } in &self.0 {
            let reached = if *reached { "reached" } else { "**not reached**" };
            writeln!(f, "| {what} | {bound} | {figure} | {reached} |")?;
        }
        Ok(())
    }
}
