//! Values of each thread, in the shape of the standard library's: of each task, in a simulation.

use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;

use super::tasks;

/// As the standard library's: one value for each task.
#[derive(Debug)]
pub struct LocalKey<T: 'static>(fn() -> T);

impl<T: 'static> LocalKey<T> {
    /// Makes a key, whose value begins as `initial` says.
    pub const fn new(initial: fn() -> T) -> Self {
        Self(initial)
    }

    /// Calls `act` with the value of the present task. Outside of a simulation it begins anew each time.
    pub fn with<R>(&'static self, act: impl FnOnce(&T) -> R) -> R {
        if !tasks::is_running() {
            return act(&(self.0)());
        }
        let value = tasks::local(std::ptr::from_ref(self).addr(), || Rc::new((self.0)()) as Rc<dyn Any>);
        act(value.downcast_ref().expect("a key has one type"))
    }
}

impl<T: 'static> LocalKey<Cell<T>> {
    /// Returns the value.
    pub fn get(&'static self) -> T
    where
        T: Copy,
    {
        self.with(Cell::get)
    }

    /// Sets the value.
    pub fn set(&'static self, value: T) {
        self.with(|cell| cell.set(value));
    }

    /// Takes the value, and leaves the default one.
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(Cell::take)
    }
}

/// Declares values of each task, in the form of the standard library's macro.
#[macro_export]
macro_rules! task_local {
    ($($(#[$attribute:meta])* static $name:ident: $type:ty = const $initial:block;)+) => {
        $($(#[$attribute])* static $name: $crate::simulation::LocalKey<$type> =
            $crate::simulation::LocalKey::new(|| $initial);)+
    };
}
