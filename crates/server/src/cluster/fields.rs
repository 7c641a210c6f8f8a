//! Bounded reading of the fields of frames. Integers are little-endian.

/// A field is missing, too long, or not what it must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed;

/// The fields of a frame that are not read yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    /// The next `length` bytes.
    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(head)
    }

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// A boolean: 0 or 1.
    pub(crate) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    /// A number that may be absent.
    pub(crate) fn maybe_u64(&mut self) -> Result<Option<u64>, Malformed> {
        let (is_there, number) = (self.flag()?, self.u64()?);
        Ok(is_there.then_some(number))
    }

    /// A text of at most 255 bytes.
    pub(crate) fn text(&mut self) -> Result<String, Malformed> {
        let length = usize::from(self.u8()?);
        String::from_utf8(self.bytes(length)?.to_vec()).map_err(|_| Malformed)
    }

    /// A sentence or a long text of at most 65,535 bytes.
    pub(crate) fn sentence(&mut self) -> Result<String, Malformed> {
        let length = usize::from(self.u16()?);
        String::from_utf8(self.bytes(length)?.to_vec()).map_err(|_| Malformed)
    }

    /// The number of items of a list, of which each has at least `item_bytes_min` bytes.
    pub(crate) fn count(&mut self, item_bytes_min: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.u32()?).map_err(|_| Malformed)?;
        let fits = count.checked_mul(item_bytes_min).is_some_and(|bytes| bytes <= self.0.len());
        fits.then_some(count).ok_or(Malformed)
    }
}

/// Appends a text of at most 255 bytes, which names of nodes and vhosts have.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    let length = u8::try_from(text.len()).expect("a name has at most 255 bytes");
    out.push(length);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a text of at most 65,535 bytes, whole.
pub(crate) fn put_long_text(out: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).expect("a name has at most 65,535 bytes");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Appends a sentence, of which at most 65,535 bytes are written.
pub(crate) fn put_sentence(out: &mut Vec<u8>, text: &str) {
    let text = text.get(..text.floor_char_boundary(usize::from(u16::MAX))).unwrap_or_default();
    let length = u16::try_from(text.len()).expect("the text was cut");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Appends a number that may be absent.
pub(crate) fn put_maybe_u64(out: &mut Vec<u8>, number: Option<u64>) {
    out.push(u8::from(number.is_some()));
    out.extend_from_slice(&number.unwrap_or_default().to_le_bytes());
}

/// Appends the number of items of a list.
pub(crate) fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("a list has less than 2^32 items");
    out.extend_from_slice(&count.to_le_bytes());
}

/// Octets as a test shows them.
#[cfg(test)]
pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
