//! Makes every checksum right again, so that what stands behind them is looked at, too.
//!
//! The places are those of `docs/internals/formats/log.md`.

use simdisk::Disk;

const FILE_HEADER: usize = 64;
const FIRST_BATCH: usize = 4096;
const BATCH_HEADER: usize = 48;
const BATCH_ALIGN: usize = 8;
const RECORD_HEADER: usize = 32;

/// Mends the checksums of all files.
pub(super) fn checksums(disk: &Disk) {
    for (name, _) in disk.files() {
        disk.damage(&name, |bytes| match name.ends_with(".log") {
            true => log_file(bytes),
            false => header(bytes),
        });
    }
}

/// The checksum of a header that is all of `bytes`.
fn header(bytes: &mut [u8]) {
    if bytes.len() >= 16 {
        bytes[12..16].fill(0);
        let crc = crc32c::crc32c(bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    }
}

fn log_file(bytes: &mut [u8]) {
    if bytes.len() < FIRST_BATCH || bytes[..FILE_HEADER].iter().all(|byte| *byte == 0) {
        return;
    }
    header(&mut bytes[..FILE_HEADER]);
    let seed = crc32c::crc32c(&bytes[24..32]);
    let mut at = FIRST_BATCH;
    let mut previous = 0_u32;
    while bytes.len() - at >= BATCH_HEADER && bytes[at..at + 4] == *b"BTCH" {
        bytes[at + 40..at + 44].copy_from_slice(&previous.to_le_bytes());
        let crc = crc32c::crc32c_append(seed, &bytes[at + 8..at + BATCH_HEADER]);
        bytes[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
        let length = number(bytes, at + 8);
        let end = (at + BATCH_HEADER).saturating_add(length).min(bytes.len());
        records(&mut bytes[at + BATCH_HEADER..end], crc);
        previous = crc;
        at = end.next_multiple_of(BATCH_ALIGN).min(bytes.len());
    }
}

fn records(mut bytes: &mut [u8], batch: u32) {
    while bytes.len() >= RECORD_HEADER {
        let len = (RECORD_HEADER + number(bytes, 0)).min(bytes.len());
        let (record, rest) = bytes.split_at_mut(len);
        let crc = crc32c::crc32c_append(crc32c::crc32c_append(batch, &record[..4]), &record[8..]);
        record[4..8].copy_from_slice(&crc.to_le_bytes());
        bytes = rest;
    }
}

fn number(bytes: &[u8], at: usize) -> usize {
    let four = bytes[at..at + 4].try_into().expect("four bytes");
    u32::from_le_bytes(four) as usize
}
