//! Sums over rounds, and how numbers are written.

/// The middle of them; of an even number the upper one of the two.
pub(crate) fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.into_iter().collect();
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the exponent of growth: 1 is linear, 2 is quadratic.
pub(crate) fn exponent(small: (f64, f64), large: (f64, f64)) -> f64 {
    (large.1 / small.1).ln() / (large.0 / small.0).ln()
}

/// Formats a number with separated thousands, and with three digits if it is small.
pub(crate) fn number(value: f64) -> String {
    let places = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        size if size >= 0.0005 => 3,
        _ => 2,
    };
    let text = format!("{value:.places$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|part| str::from_utf8(part).ok()).collect();
    format!("{sign}{}{rest}", groups.join(","))
}

/// The number, or a dash where it could not be counted.
pub(crate) fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]).to_bits(), 2.0_f64.to_bits());
    }

    #[test]
    fn the_exponent_of_a_square_is_two() {
        assert!((exponent((10.0, 100.0), (200.0, 40_000.0)) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn numbers_are_short() {
        let written = [170_660.4, 49.26, 1.037, 0.084, -1234.6, 0.0].map(number);
        assert_eq!(written, ["170,660", "49.3", "1.04", "0.084", "-1,235", "0.00"]);
    }
}
