//! Makes every checksum right again, so that what stands behind them is looked at, too.
//!
//! The places are those that `docs/internals/formats/log.md` tells.

use super::disk::Disk;

const FILE_HEADER: usize = 64;
const FIRST_BATCH: usize = 4096;
const BATCH_HEADER: usize = 48;
const BATCH_ALIGN: usize = 8;
const RECORD_HEADER: usize = 32;

/// Mends the checksums of all files.
pub(super) fn checksums(disk: &Disk) {
    for (name, _) in disk.files() {
        disk.damage(&name, |octets| match name.ends_with(".log") {
            true => log_file(octets),
            false => header(octets),
        });
    }
}

/// The checksum of a header that is all of `octets`.
fn header(octets: &mut [u8]) {
    if octets.len() >= 16 {
        octets[12..16].fill(0);
        let crc = crc32c::crc32c(octets);
        octets[12..16].copy_from_slice(&crc.to_le_bytes());
    }
}

fn log_file(octets: &mut [u8]) {
    if octets.len() < FIRST_BATCH || octets[..FILE_HEADER].iter().all(|octet| *octet == 0) {
        return;
    }
    header(&mut octets[..FILE_HEADER]);
    let seed = crc32c::crc32c(&octets[24..32]);
    let mut at = FIRST_BATCH;
    let mut previous = 0_u32;
    while octets.len() - at >= BATCH_HEADER && octets[at..at + 4] == *b"BTCH" {
        octets[at + 40..at + 44].copy_from_slice(&previous.to_le_bytes());
        let crc = crc32c::crc32c_append(seed, &octets[at + 8..at + BATCH_HEADER]);
        octets[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
        let length = number(octets, at + 8);
        let end = (at + BATCH_HEADER).saturating_add(length).min(octets.len());
        records(&mut octets[at + BATCH_HEADER..end], crc);
        previous = crc;
        at = end.next_multiple_of(BATCH_ALIGN).min(octets.len());
    }
}

fn records(mut octets: &mut [u8], batch: u32) {
    while octets.len() >= RECORD_HEADER {
        let len = (RECORD_HEADER + number(octets, 0)).min(octets.len());
        let (record, rest) = octets.split_at_mut(len);
        let crc = crc32c::crc32c_append(crc32c::crc32c_append(batch, &record[..4]), &record[8..]);
        record[4..8].copy_from_slice(&crc.to_le_bytes());
        octets = rest;
    }
}

fn number(octets: &[u8], at: usize) -> usize {
    let four = octets[at..at + 4].try_into().expect("four octets");
    u32::from_le_bytes(four) as usize
}
