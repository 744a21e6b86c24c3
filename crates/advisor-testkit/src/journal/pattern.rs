//! Patterns over labels.

/// Checks whether `label` matches `pattern`: `*` matches any characters, everything else matches itself.
pub(super) fn matches(pattern: &str, label: &str) -> bool {
    let Some((first, others)) = pattern.split_once('*') else {
        return pattern == label;
    };
    let Some(mut rest) = label.strip_prefix(first) else {
        return false;
    };
    let mut parts = others.split('*');
    let last = parts.next_back().unwrap_or_default();
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, label, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("", "", true),
            ("*", "", true),
            ("*", "a b", true),
            ("a*", "a", true),
            ("a*", "ab", true),
            ("a*", "ba", false),
            ("*b", "ab", true),
            ("*b", "ba", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abde", false),
            ("a*bc*c", "abc", false),
            ("a**b", "ab", true),
            ("*ä*", "naïv är", true),
            ("tool.* c1", "tool.end c1", true),
            ("tool.* c1", "tool.end c12", false),
        ] {
            assert_eq!(matches(pattern, label), expected, "{pattern} ~ {label}");
        }
    }
}
