//! Letters that depend on a text.

/// Returns letters and digits that depend only on text and attempt: the same in every process and version.
pub(super) fn letters(text: &str, attempt: u64, count: usize) -> String {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    // FNV-1a, then SplitMix64 for each letter.
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut state = text.bytes().chain(attempt.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, fnv);
    let mut letter = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let at = ((z ^ (z >> 31)) % ALPHABET.len() as u64) as usize;
        ALPHABET.get(at).map_or('0', |letter| char::from(*letter))
    };
    (0..count).map(|_| letter()).collect()
}
