//! One record that was fetched alone, outside a batch.

use std::borrow::Cow;

/// A fetched record outside a batch.
#[derive(Clone, Debug, Default)]
pub struct Fetched<'a> {
    /// Its value.
    pub value: Cow<'a, [u8]>,
    /// Its headers, in their order.
    pub headers: Vec<(Cow<'a, str>, Cow<'a, [u8]>)>,
}
