//! Random numbers that cannot be guessed, taken from the system several at a time.

use std::sync::{Mutex, PoisonError};

use crate::{Error, Result};

/// `getrandom` returns this many bytes at once, and never fewer.
const STOCK: usize = 256 / size_of::<u64>();

/// Random numbers that cannot be guessed, never 0. A forked child would draw those of its parent: the owner refuses
/// use there.
#[derive(Debug, Default)]
pub(super) struct RandomIds {
    stock: Mutex<Vec<u64>>,
}

impl RandomIds {
    /// Returns the next number.
    pub(super) fn draw(&self) -> Result<u64> {
        #[cfg(feature = "simulated")]
        if crate::wake::simulation::is_running() {
            return Ok(1 + crate::wake::simulation::random(u64::MAX));
        }
        let mut stock = self.stock.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = stock.pop() {
            return Ok(number);
        }
        let mut fresh = [0u64; STOCK];
        // SAFETY: writes to an array on our stack, within its size.
        let got = unsafe { libc::getrandom(fresh.as_mut_ptr().cast(), size_of_val(&fresh), 0) };
        if got.cast_unsigned() != size_of_val(&fresh) {
            return Err(Error::last_system("getrandom"));
        }
        stock.extend(fresh.into_iter().map(|number| number.max(1)));
        Ok(stock.pop().unwrap_or(1))
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_number_comes_twice() {
        let numbers = RandomIds::default();
        let drawn: HashSet<u64> = (0..10 * STOCK).map(|_| numbers.draw().expect("the system has some")).collect();
        assert_eq!(drawn.len(), 10 * STOCK);
        assert!(!drawn.contains(&0));
    }
}
