//! `Price` per million tokens, and `Prices`: a table by the names of models.

use advisor_core::{Text, Usage};

use super::money::Money;

/// The price of a model, per million tokens.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    input: Money,
    output: Money,
    cached_input: Money,
    cache_write: Money,
}

impl Price {
    /// Creates a price per million tokens of requests and of answers. Reasoning counts as answer.
    pub fn per_million(input: Money, output: Money) -> Self {
        Self { input, output, cached_input: input, cache_write: input }
    }

    /// Sets the price of input that was read from a prompt cache; that of input by default.
    pub fn with_cached_input(self, cached_input: Money) -> Self {
        Self { cached_input, ..self }
    }

    /// Sets the price of input that was written to a prompt cache; that of input by default.
    pub fn with_cache_write(self, cache_write: Money) -> Self {
        Self { cache_write, ..self }
    }

    /// Returns the price of a million tokens of requests and a million of answers together.
    pub(crate) fn of_a_million_each(self) -> Money {
        self.input.saturating_add(self.output)
    }

    /// Returns the cost of an answer; `None` if the tokens of the request or of the answer are not known.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> Option<Money> {
        let (input, output) = (usage.input_tokens?, usage.output_tokens?);
        let cached = usage.cached_input_tokens.unwrap_or_default().min(input);
        let written = usage.cache_write_tokens.unwrap_or_default().min(input - cached);
        let parts = [
            self.input.per_million(input - cached - written),
            self.cached_input.per_million(cached),
            self.cache_write.per_million(written),
            self.output.per_million(output),
        ];
        Some(parts.into_iter().fold(Money::default(), Money::saturating_add))
    }
}

/// The prices of models, by their names.
///
/// # Example
/// ```
/// use common_advisors::{Money, Price, Prices};
///
/// let prices = Prices::new()
///     .with("small-model-*", Price::per_million(Money::from_cents(15), Money::from_cents(60)))
///     .with("*", Price::per_million(Money::from_cents(250), Money::from_cents(1000)));
/// assert!(prices.of("another-model").is_some());
/// ```
#[must_use]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices(Vec<(Text, Price)>);

impl Prices {
    /// Creates an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the price of a model, by the name that its provider reports with an answer.
    ///
    /// A name with `*` at its end is that of all models whose names begin with the part before it. The longest name
    /// takes precedence.
    pub fn with(mut self, model: impl Into<Text>, price: Price) -> Self {
        self.0.push((model.into(), price));
        self
    }

    /// Returns the price of a model, if the table has one. A model without a known name has an empty one.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<Price> {
        let fit = |(name, price): &(Text, Price)| match name.strip_suffix('*') {
            Some(beginning) => model.starts_with(beginning).then_some((beginning.len(), *price)),
            // A whole name is longer than any beginning that fits.
            None => (*name == *model).then_some((usize::MAX, *price)),
        };
        self.0.iter().filter_map(fit).max_by_key(|(length, _)| *length).map(|(_, price)| price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(input: u64) -> Price {
        Price::per_million(Money::from_cents(input), Money::from_cents(input * 4))
    }

    #[test]
    fn longest_name_takes_precedence() {
        let prices = Prices::new()
            .with("*", price(1))
            .with("m-mini*", price(2))
            .with("m*", price(3))
            .with("m", price(4));
        for (model, expected) in [("m", 4), ("m-2026", 3), ("m-mini-2026", 2), ("other", 1), ("", 1)] {
            assert_eq!(prices.of(model), Some(price(expected)), "{model}");
        }
        assert_eq!(Prices::new().with("m", price(1)).of("m-2026"), None);
    }

    #[test]
    fn parts_of_input_have_their_prices() {
        let mut usage = Usage::new(1_000_000, 100_000);
        assert_eq!(price(100).of(&usage), Some(Money::from_cents(140)));
        usage.cached_input_tokens = Some(600_000);
        usage.cache_write_tokens = Some(100_000);
        assert_eq!(price(100).of(&usage), Some(Money::from_cents(140)), "a part costs as much as the rest");
        let price =
            price(100).with_cached_input(Money::from_cents(10)).with_cache_write(Money::from_cents(125));
        assert_eq!(price.of(&usage), Some(Money::from_millionths(300_000 + 60_000 + 125_000 + 400_000)));
        usage.output_tokens = None;
        assert_eq!(price.of(&usage), None);
    }
}
