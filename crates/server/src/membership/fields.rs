//! The fields of frames and messages between nodes, read within bounds and written. Integers are little-endian.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

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

    pub(crate) fn i64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_le_bytes)
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

    /// Octets behind their length of four octets.
    pub(crate) fn octets(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.u32()?).map_err(|_| Malformed)?;
        self.bytes(length)
    }

    /// All octets that are left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// The number of items of a list, of which each has at least `item_bytes_min` bytes.
    pub(crate) fn count(&mut self, item_bytes_min: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.u32()?).map_err(|_| Malformed)?;
        let fits = count.checked_mul(item_bytes_min).is_some_and(|bytes| bytes <= self.0.len());
        fits.then_some(count).ok_or(Malformed)
    }
}

/// Writes the fields that [`Fields`] reads, one behind the other.
#[derive(Default, Debug)]
pub(crate) struct FieldWriter(Vec<u8>);

impl FieldWriter {
    /// The octets of all fields.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Bytes whose number the reader knows.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u8(&mut self, number: u8) -> &mut Self {
        self.bytes(&[number])
    }

    pub(crate) fn u16(&mut self, number: u16) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    pub(crate) fn u32(&mut self, number: u32) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, number: u64) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    pub(crate) fn i64(&mut self, number: i64) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    pub(crate) fn flag(&mut self, flag: bool) -> &mut Self {
        self.u8(u8::from(flag))
    }

    pub(crate) fn maybe_u64(&mut self, number: Option<u64>) -> &mut Self {
        self.flag(number.is_some()).u64(number.unwrap_or_default())
    }

    /// A text of at most 255 bytes, which names of nodes and vhosts have.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        let length = u8::try_from(text.len()).expect("a name has at most 255 bytes");
        self.u8(length).bytes(text.as_bytes())
    }

    /// A text of at most 65,535 bytes, whole; read as a sentence.
    pub(crate) fn long_text(&mut self, text: &str) -> &mut Self {
        let length = u16::try_from(text.len()).expect("a name has at most 65,535 bytes");
        self.u16(length).bytes(text.as_bytes())
    }

    /// A sentence, of which at most 65,535 bytes are written.
    pub(crate) fn sentence(&mut self, text: &str) -> &mut Self {
        let end = text.floor_char_boundary(usize::from(u16::MAX));
        self.long_text(text.get(..end).unwrap_or_default())
    }

    /// Octets behind their length of four octets.
    pub(crate) fn octets(&mut self, octets: &[u8]) -> &mut Self {
        let length = u32::try_from(octets.len()).expect("a field has less than 2^32 octets");
        self.u32(length).bytes(octets)
    }

    /// The number of items of a list.
    pub(crate) fn count(&mut self, count: usize) -> &mut Self {
        self.u32(u32::try_from(count).expect("a list has less than 2^32 items"))
    }
}

/// Writes a message of a dialogue: its length (four octets) and its content.
pub(crate) async fn write_message(
    stream: &mut (impl AsyncWrite + Unpin),
    content: &[u8],
) -> io::Result<()> {
    let mut message = FieldWriter::default();
    message.octets(content);
    stream.write_all(&message.into_bytes()).await?;
    stream.flush().await
}

/// Reads a message, and never behind it.
///
/// # Errors
/// If the stream ends, or for a message of more than `bytes_max` octets, which takes no memory.
pub(crate) async fn read_message(
    stream: &mut (impl AsyncRead + Unpin),
    bytes_max: usize,
) -> io::Result<Vec<u8>> {
    let length = stream.read_u32_le().await?;
    let length = usize::try_from(length).ok().filter(|length| *length <= bytes_max);
    let too_long = || io::Error::new(io::ErrorKind::InvalidData, "a message is too long");
    let mut content = vec![0; length.ok_or_else(too_long)?];
    stream.read_exact(&mut content).await?;
    Ok(content)
}

/// Octets as a test shows them.
#[cfg(test)]
pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
