//! `Money`, read and written as decimal numbers, and `Price`, per million tokens.

use std::fmt;

use advisor_core::{Text, Usage};

/// An amount of money, in millionths of the unit of a currency. The currency is that of the prices.
///
/// # Example
/// ```
/// use common_advisors::Money;
///
/// assert_eq!(Money::from_cents(250).to_string(), "2.5");
/// assert_eq!("0.075".parse::<Money>()?.to_string(), "0.075");
/// # Ok::<(), advisor_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(u64);

const MILLION: u64 = 1_000_000;

impl Money {
    /// Creates an amount from hundredths of a unit.
    #[must_use]
    pub const fn from_cents(cents: u64) -> Self {
        Self(cents.saturating_mul(MILLION / 100))
    }

    /// Returns the sum, or the largest amount if it is larger.
    pub(crate) const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns the cost of tokens at this price per million, rounded up.
    fn per_million(self, tokens: u64) -> Self {
        let cost = (u128::from(self.0) * u128::from(tokens)).div_ceil(u128::from(MILLION));
        Self(u64::try_from(cost).unwrap_or(u64::MAX))
    }
}

/// Writes the amount as a decimal number, without a currency.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (units, millionths) = (self.0 / MILLION, self.0 % MILLION);
        if millionths == 0 {
            return write!(f, "{units}");
        }
        let fraction = format!("{millionths:06}");
        write!(f, "{units}.{}", fraction.trim_end_matches('0'))
    }
}

/// Parses a decimal number of units with at most six digits after the point.
impl std::str::FromStr for Money {
    type Err = advisor_core::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (units, fraction) = text.split_once('.').unwrap_or((text, "0"));
            let is_number =
                |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            if !is_number(units) || !is_number(fraction) || fraction.len() > 6 {
                return None;
            }
            let millionths: u64 = format!("{fraction:0<6}").parse().ok()?;
            Some(Self(units.parse::<u64>().ok()?.checked_mul(MILLION)?.checked_add(millionths)?))
        };
        parse().ok_or_else(|| {
            advisor_core::Error::configuration(
                "an amount of money is a number such as `2.5`, with at most six digits after the point",
            )
        })
    }
}

/// The price of a model, per million tokens.
///
/// # Example
/// ```
/// use common_advisors::{Money, Price};
///
/// let price = Price::per_million("2.5".parse()?, Money::from_cents(1_000));
/// let _with_cache = Price { cached_input: "0.25".parse()?, ..price };
/// # Ok::<(), advisor_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// That of requests.
    pub input: Money,
    /// That of answers. Reasoning counts as answer.
    pub output: Money,
    /// That of input that was read from a prompt cache.
    pub cached_input: Money,
    /// That of input that was written to a prompt cache.
    pub cache_write: Money,
}

impl Price {
    /// Creates a price without discounts for cached input.
    #[must_use]
    pub fn per_million(input: Money, output: Money) -> Self {
        Self { input, output, cached_input: input, cache_write: input }
    }

    /// Returns the cost of an answer; `None` if the tokens of the request or of the answer are not known.
    pub(crate) fn of(&self, usage: &Usage) -> Option<Money> {
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

/// Returns the price of a model. A name with `*` at its end is that of all models that begin so; the longest name takes
/// precedence.
pub(crate) fn price_of(prices: &[(Text, Price)], model: &str) -> Option<Price> {
    let fit = |(name, price): &(Text, Price)| match name.strip_suffix('*') {
        Some(beginning) => model.starts_with(beginning).then_some((beginning.len(), *price)),
        // A whole name is longer than any beginning that fits.
        None => (*name == *model).then_some((usize::MAX, *price)),
    };
    prices.iter().filter_map(fit).max_by_key(|(length, _)| *length).map(|(_, price)| price)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn amounts_are_read_and_written() {
        for (text, millionths) in
            [("0", 0), ("2.5", 2_500_000), ("0.000001", 1), ("12", 12_000_000), ("0.075", 75_000)]
        {
            let money: Money = text.parse().unwrap();
            assert_eq!((money.0, money.to_string().as_str()), (millionths, text));
        }
        for text in ["", ".5", "1.", "-1", "+1", "1,5", "0.0000001", "99999999999999999999", "1.5e3"] {
            assert!(text.parse::<Money>().is_err(), "{text}");
        }
    }

    #[test]
    fn costs_are_rounded_up_and_never_overflow() {
        let price = Money(75_000);
        let costs = [0, 1, 13, 14, 1_000_000].map(|tokens| price.per_million(tokens).0);
        assert_eq!(costs, [0, 1, 1, 2, 75_000]);
        assert_eq!(Money(u64::MAX).per_million(u64::MAX), Money(u64::MAX));
    }

    fn price(input: u64) -> Price {
        Price::per_million(Money::from_cents(input), Money::from_cents(input * 4))
    }

    #[test]
    fn longest_name_takes_precedence() {
        let prices =
            [("*", 1), ("m-mini*", 2), ("m*", 3), ("m", 4)].map(|(name, cents)| (name.into(), price(cents)));
        for (model, expected) in [("m", 4), ("m-2026", 3), ("m-mini-2026", 2), ("other", 1), ("", 1)] {
            assert_eq!(price_of(&prices, model), Some(price(expected)), "{model}");
        }
        assert_eq!(price_of(&[("m".into(), price(1))], "m-2026"), None);
    }

    #[test]
    fn parts_of_input_have_their_prices() {
        let mut usage = Usage::new(1_000_000, 100_000);
        assert_eq!(price(100).of(&usage), Some(Money::from_cents(140)));
        usage.cached_input_tokens = Some(600_000);
        usage.cache_write_tokens = Some(100_000);
        assert_eq!(price(100).of(&usage), Some(Money::from_cents(140)), "a part costs as much as the rest");
        let (cached_input, cache_write) = (Money::from_cents(10), Money::from_cents(125));
        let price = Price { cached_input, cache_write, ..price(100) };
        assert_eq!(price.of(&usage), Some(Money(300_000 + 60_000 + 125_000 + 400_000)));
        usage.output_tokens = None;
        assert_eq!(price.of(&usage), None);
    }
}
