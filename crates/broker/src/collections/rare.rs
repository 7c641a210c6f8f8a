//! A collection that few objects have.

/// A value that takes the room of a pointer until it is used.
#[derive(Debug)]
pub(crate) struct Rare<T>(Option<Box<T>>);

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Rare<T> {
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_deref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// The value, which begins empty.
    #[inline]
    pub(crate) fn or_default(&mut self) -> &mut T
    where
        T: Default,
    {
        self.0.get_or_insert_default()
    }

    /// Drops the value.
    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }

    /// Takes the value, an empty one if there is none.
    pub(crate) fn take(&mut self) -> T
    where
        T: Default,
    {
        self.0.take().map(|value| *value).unwrap_or_default()
    }
}
