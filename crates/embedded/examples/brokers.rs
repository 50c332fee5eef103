//! Runs embedded brokers for clients of any language: prints where they listen, and stops when its standard input ends.
//!
//! `cargo run --release --example brokers -p awoke-embedded -- 3` runs three brokers.

use std::error::Error;
use std::io::Read;

fn main() -> Result<(), Box<dyn Error>> {
    let brokers = std::env::args().nth(1).map_or(Ok(1), |count| count.parse())?;
    let server = awoke_embedded::Server::start(brokers)?;
    println!("{}", server.bootstrap_servers());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
