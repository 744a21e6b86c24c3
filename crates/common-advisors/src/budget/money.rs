//! `Money`: millionths of a unit, read and written as decimal numbers.

use std::fmt;

/// An amount of money, in millionths of the unit of a currency. The currency is that of the prices.
///
/// # Example
/// ```
/// use common_advisors::Money;
///
/// assert_eq!(Money::from_cents(250).to_string(), "2.5");
/// assert_eq!(Money::from_millionths(75_000), "0.075".parse()?);
/// # Ok::<(), advisor_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(u64);

const MILLION: u64 = 1_000_000;

impl Money {
    /// Creates an amount from millionths of a unit.
    #[must_use]
    pub const fn from_millionths(millionths: u64) -> Self {
        Self(millionths)
    }

    /// Creates an amount from hundredths of a unit.
    #[must_use]
    pub const fn from_cents(cents: u64) -> Self {
        Self(cents.saturating_mul(MILLION / 100))
    }

    /// Returns the amount in millionths of a unit.
    #[must_use]
    pub const fn millionths(self) -> u64 {
        self.0
    }

    /// Returns the sum, or the largest amount if it is larger.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns the cost of tokens at this price per million, rounded up.
    pub(super) fn per_million(self, tokens: u64) -> Self {
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
            assert_eq!((money.millionths(), money.to_string().as_str()), (millionths, text));
        }
        for text in ["", ".5", "1.", "-1", "+1", "1,5", "0.0000001", "99999999999999999999", "1.5e3"] {
            assert!(text.parse::<Money>().is_err(), "{text}");
        }
    }

    #[test]
    fn costs_are_rounded_up_and_never_overflow() {
        let price = Money::from_millionths(75_000);
        let costs = [0, 1, 13, 14, 1_000_000].map(|tokens| price.per_million(tokens).millionths());
        assert_eq!(costs, [0, 1, 1, 2, 75_000]);
        assert_eq!(Money(u64::MAX).per_million(u64::MAX), Money(u64::MAX));
    }
}
