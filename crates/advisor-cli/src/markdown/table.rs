//! The rows of a table. Each is shown as it arrives, so the header decides the widths of the columns.

/// Returns the cells of a row, without the spaces around them.
pub(super) fn cells(row: &str) -> Vec<&str> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let (mut cells, mut from, mut escaped) = (Vec::new(), 0, false);
    for (at, char) in row.char_indices() {
        if char == '|' && !escaped {
            cells.push(row.get(from..at).unwrap_or_default().trim());
            from = at + 1;
        }
        escaped = char == '\\' && !escaped;
    }
    let last = row.get(from..).unwrap_or_default().trim();
    if !last.is_empty() {
        cells.push(last);
    }
    cells
}

/// Checks whether a row only separates the header from the others.
pub(super) fn is_separator(cells: &[&str]) -> bool {
    let is_dashes = |cell: &&str| cell.contains('-') && cell.chars().all(|char| matches!(char, '-' | ':'));
    !cells.is_empty() && cells.iter().all(is_dashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_split_at_its_bars() {
        assert_eq!(cells("| a | b c |"), ["a", "b c"]);
        assert_eq!(cells("|a\\|b||  c"), ["a\\|b", "", "c"]);
        assert!(cells("|").is_empty());
    }

    #[test]
    fn a_separator_has_dashes_in_each_cell() {
        for (row, expected) in [("|---|:-:|", true), ("| - |", true), ("|---| a |", false), ("||", false)] {
            assert_eq!(is_separator(&cells(row)), expected, "{row}");
        }
    }
}
