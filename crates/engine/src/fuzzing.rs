//! Settings of the tests with random input.

use proptest::test_runner::Config;

/// Returns how many cases to try: `PROPTEST_CASES`, or as many as the suite has time for.
pub(crate) fn cases() -> Config {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(64);
    // A failure prints its input; no file is left in the tree.
    Config { cases, failure_persistence: None, ..Config::default() }
}
