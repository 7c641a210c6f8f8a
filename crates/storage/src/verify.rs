//! The check of files that are in use: each file of a snapshot is read again, batch by batch, and held against its
//! checksums. Nothing is changed, and no more than a batch is in memory unless one is damaged.

use std::io;

use crate::directory::{Directory, DirectoryFile};
use crate::format::{BATCH_ALIGN, BatchHeader, FILE_HEADER_BYTES, FIRST_BATCH, FileHeader, Lsn};
use crate::limits::SNAPSHOT_COPY_BYTES;
use crate::manifest::FileEntry;
use crate::recovery::{Damage, read_all, scanned_file};
use crate::segment_reader::{Corruption, ScannedFile, is_whole, scan};
use crate::snapshot::LogSnapshot;

/// A file of a log that can be verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerifiableFile {
    /// Id of the file; later files have higher ones.
    pub id: u64,
    /// Bytes in use.
    pub bytes: u64,
}

impl VerifiableFile {
    /// Name of the file in the directory of the log.
    #[must_use]
    pub fn name(&self) -> String {
        crate::manifest::file_name(self.id)
    }
}

impl<D: Directory> LogSnapshot<D> {
    /// The file with the lowest id above `id`; `None` behind the last one. Of the active segment, the bytes that are
    /// written count.
    #[must_use]
    pub fn file_behind(&self, id: u64) -> Option<VerifiableFile> {
        let files = self.manifest().files.iter().filter(|file| file.id > id);
        let next = files.min_by_key(|file| file.id)?;
        Some(VerifiableFile { id: next.id, bytes: self.bytes_of(next) })
    }

    /// The highest id of a file; 0 without files.
    #[must_use]
    pub fn last_file_id(&self) -> u64 {
        self.manifest().files.iter().map(|file| file.id).max().unwrap_or_default()
    }

    fn bytes_of(&self, file: &FileEntry) -> u64 {
        if file.is_sealed() { file.bytes } else { self.active_bytes() }
    }

    /// Reads a file of the snapshot again, and returns what has changed since it was written. `read` is called after
    /// at most [`SNAPSHOT_COPY_BYTES`] or a batch, with the number of bytes.
    ///
    /// # Errors
    /// Errors of the system and of `read`.
    ///
    /// # Panics
    /// If the snapshot has no such file.
    pub fn verify(
        &self,
        file: VerifiableFile,
        read: &mut dyn FnMut(u64) -> io::Result<()>,
    ) -> io::Result<Vec<Damage>> {
        let entry = self.manifest().files.iter().find(|entry| entry.id == file.id);
        let entry = entry.expect("the file is one of the snapshot");
        let name = entry.name();
        let damage = |corruption: Corruption, problem| Damage {
            file: name.clone(),
            offset: corruption.offset as u64,
            len: corruption.len as u64,
            after: corruption.after,
            problem,
            kept_in: None,
            record: corruption.record,
        };
        let opened = match self.directory().open(&name) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(vec![damage(Corruption::of_unknown(0, 0, Lsn(0)), "missing")]);
            }
            Err(error) => return Err(error),
        };
        let scanned = scanned_file(self.manifest().log_id, entry);
        let mut damages = Vec::new();
        if !has_good_header(&opened, scanned)? {
            let header = Corruption::of_unknown(0, FILE_HEADER_BYTES, Lsn(0));
            damages.push(damage(header, CHANGED));
        }
        if !has_good_batches(&opened, scanned, file.bytes, read)? {
            // The damage has to be named: the whole file is read, as it is when the log is opened.
            let mut bytes = read_all(&opened)?;
            bytes.truncate(usize::try_from(file.bytes).unwrap_or(usize::MAX));
            let durable = ScannedFile { is_sealed: true, ..scanned };
            let found = scan(&bytes, durable, &mut |_| {});
            damages.extend(found.corruptions.into_iter().map(|one| damage(one, CHANGED)));
            if (bytes.len() as u64) < file.bytes {
                let missing = usize::try_from(file.bytes).unwrap_or(usize::MAX) - bytes.len();
                let end = Corruption::of_unknown(bytes.len(), missing, found.last);
                damages.push(damage(end, CHANGED));
            }
        }
        Ok(damages)
    }
}

const CHANGED: &str = "bytes that were durable have changed";

/// True if the header of the file is the one that was written.
fn has_good_header<F: DirectoryFile>(opened: &F, file: ScannedFile) -> io::Result<bool> {
    let mut header = [0; FILE_HEADER_BYTES];
    opened.read_at(&mut header, 0)?;
    Ok(FileHeader::decode(&header).is_ok_and(|header| {
        header.log_id == file.log_id && header.file_id == file.id && header.layout == file.layout
    }))
}

/// True if every batch up to `end` is whole and follows the one before.
fn has_good_batches<F: DirectoryFile>(
    opened: &F,
    file: ScannedFile,
    end: u64,
    read: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<bool> {
    let header_bytes = file.layout.batch_header_bytes();
    let (mut at, mut previous_crc, mut unread) = (FIRST_BATCH, 0, 0);
    let mut batch = Vec::new();
    while at < end {
        batch.resize(header_bytes, 0);
        if opened.read_at(&mut batch, at)? != header_bytes {
            return Ok(false);
        }
        let Some((header, crc)) = BatchHeader::read(file.layout, file.id, &batch) else {
            return Ok(false);
        };
        if header.previous_crc != previous_crc || header.whole_len() > end - at {
            return Ok(false);
        }
        let length = header.length as usize;
        batch.resize(length, 0);
        if opened.read_at(&mut batch, at + header_bytes as u64)? != length {
            return Ok(false);
        }
        if !is_whole(&header, header.record_seed(file.log_id, crc), &batch) {
            return Ok(false);
        }
        (at, previous_crc) = (at + header.whole_len(), crc);
        unread += header.whole_len();
        // A large batch does not keep its memory.
        batch.truncate(SNAPSHOT_COPY_BYTES);
        batch.shrink_to(SNAPSHOT_COPY_BYTES);
        if unread >= SNAPSHOT_COPY_BYTES as u64 {
            read(std::mem::take(&mut unread))?;
        }
    }
    read(unread)?;
    debug_assert!(at.is_multiple_of(BATCH_ALIGN as u64), "batches are aligned");
    Ok(true)
}
