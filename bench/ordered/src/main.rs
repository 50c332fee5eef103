//! Measures ordered append from many threads, and two ways of sending entries to a follower. Prints one line of JSON
//! for each cell.
//!
//! `ordered append SECONDS PRODUCERS,… THINK_MS,…` and `ordered follower SECONDS PRODUCERS,…`.

mod append;
mod cell;
mod follower;
mod references;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["append", seconds, producers, think_ms] => {
            append::run(number(seconds), &numbers(producers), &numbers(think_ms));
        }
        ["follower", seconds, producers] => follower::run(number(seconds), &numbers(producers)),
        _ => {
            eprintln!("usage: ordered append SECONDS PRODUCERS,.. THINK_MS,.. | ordered follower SECONDS PRODUCERS,..");
            std::process::exit(2);
        }
    }
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

fn numbers(text: &str) -> Vec<u64> {
    text.split(',').map(|each| each.parse().unwrap_or_else(|_| panic!("{each:?} is no number"))).collect()
}
