//! A timeline as one page, without scripts.

use std::fmt::Write;

use super::event::Step;
use super::timeline::{Cell, Timeline};

/// The policy forbids everything but the style in the page, whatever the content is.
const HEAD: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>Timeline of a journal</title>
<style>
:root { color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif; }
table { border-collapse: collapse; }
th { position: sticky; top: 0; background: Canvas; padding: 4px 8px; text-align: left; white-space: nowrap; }
td { padding: 0 8px; vertical-align: top; }
td.time { text-align: right; font-variant-numeric: tabular-nums; opacity: .6; white-space: nowrap; }
td.idle, td.active, td.event { text-align: center; min-width: 5em; }
td.active { background: linear-gradient(currentColor) center / 2px 100% no-repeat; opacity: .3; }
td.text { overflow-wrap: anywhere; }
tr.fails { color: #c22; }
</style>
<h1>Timeline of a journal</h1>
"#;

/// Renders a page with a table: a row for each event, a column for each lane.
pub(super) fn render(timeline: &Timeline) -> String {
    let mut out = HEAD.to_owned();
    // Writing to a text cannot fail.
    let _ = writeln!(out, "<p>{}</p>", escaped(&timeline.facts.to_string()));
    out.push_str("<table>\n<thead><tr><th scope=\"col\">time</th>");
    for lane in &timeline.lanes {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escaped(lane.name()));
    }
    out.push_str("<th scope=\"col\">event</th></tr></thead>\n<tbody>\n");
    for (moment, cells) in timeline.rows() {
        let class = if moment.step == Step::Fails { " class=\"fails\"" } else { "" };
        let time = moment.at_ms.map_or_else(String::new, |at| format!("{at} ms"));
        let _ = write!(out, "<tr{class}><td class=\"time\">{time}</td>");
        cells.into_iter().for_each(|shown| out.push_str(cell(shown)));
        let (lane, text) = (escaped(moment.lane.name()), escaped(&moment.text));
        let _ = writeln!(out, "<td class=\"text\"><b>{lane}</b> {text}</td></tr>");
    }
    out.push_str("</tbody>\n</table>\n");
    if let Some(note) = timeline.note() {
        let _ = writeln!(out, "<p>{}</p>", escaped(&note));
    }
    out.push_str("</html>\n");
    out
}

fn cell(cell: Cell) -> &'static str {
    match cell {
        Cell::Idle => "<td class=\"idle\"></td>",
        Cell::Active => "<td class=\"active\"></td>",
        Cell::Event(Step::Enters) => "<td class=\"event\">▼</td>",
        Cell::Event(Step::Ends) => "<td class=\"event\">▲</td>",
        Cell::Event(Step::Fails) => "<td class=\"event\">✗</td>",
        Cell::Event(Step::Happens) => "<td class=\"event\">●</td>",
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            char => escaped.push(char),
        }
    }
    escaped
}
