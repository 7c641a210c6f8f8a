//! Pages: written once, read as a whole or in parts, and never read wrong.

use simdisk::{Disk, Random};
use storage::{Directory, Lsn, PageEntry, PageError, PageStore, PageWriter};

const ID: u64 = 7;

/// Messages as they are put into a page and come out of it.
type Messages = Vec<(PageEntry, Vec<u8>)>;

fn entries() -> Messages {
    let mut random = Random(3);
    (1..=20)
        .map(|seq| {
            let entry = PageEntry {
                seq,
                lsn: Lsn(100 + seq),
                arrived_us: 1_000_000 + seq,
                deadline_us: (seq % 3 == 0).then_some(5_000_000 - seq),
                bytes: u32::try_from(seq).unwrap(),
            };
            let len = random.below(60);
            (entry, (0..len).map(|_| u8::try_from(random.below(256)).unwrap()).collect())
        })
        .collect()
}

fn written() -> (Disk, PageStore<Disk>, Messages) {
    let disk = Disk::new();
    let store = PageStore::open(disk.clone(), 1).unwrap();
    let entries = entries();
    write(&store, ID, &entries);
    (disk, store, entries)
}

fn write(store: &PageStore<Disk>, id: u64, entries: &Messages) {
    let mut page = PageWriter::new(entries.len(), vec![9; 50]);
    for (entry, bytes) in entries {
        page.push(entry, |out| out.extend_from_slice(bytes));
    }
    store.write(id, page).1.unwrap();
}

fn read(store: &PageStore<Disk>, chosen: &[usize]) -> Result<Messages, PageError> {
    let mut read = Vec::new();
    let mut buffer = vec![7; 3];
    store.read(ID, &mut buffer, |_| chosen.to_vec(), &mut |entry, bytes| {
        read.push((entry, bytes.to_vec()));
    })?;
    Ok(read)
}

#[test]
fn page_round_trips() {
    let (_, store, entries) = written();
    let known: Vec<PageEntry> = entries.iter().map(|(entry, _)| *entry).collect();
    assert_eq!(store.entries(ID).unwrap(), known);
    let all: Vec<usize> = (0..entries.len()).collect();
    assert_eq!(read(&store, &all).unwrap(), entries);
    let some = [11, 2, 19];
    let expected: Vec<_> = some.iter().map(|at| entries[*at].clone()).collect();
    assert_eq!(read(&store, &some).unwrap(), expected);
    assert_eq!(read(&store, &[]).unwrap(), []);
}

#[test]
fn page_with_a_changed_byte_is_never_read() {
    let (disk, store, entries) = written();
    let all: Vec<usize> = (0..entries.len()).collect();
    let (name, len) = disk.files().remove(0);
    for at in 0..len {
        disk.damage(&name, |bytes| bytes[at] ^= 0x20);
        for chosen in [&all[..], &[at % entries.len()]] {
            if let Ok(read) = read(&store, chosen) {
                let expected: Vec<_> = chosen.iter().map(|at| entries[*at].clone()).collect();
                assert_eq!(read, expected, "byte {at}");
                assert!(chosen.len() == 1, "byte {at} belongs to some message");
            }
        }
        disk.damage(&name, |bytes| bytes[at] ^= 0x20);
    }
    disk.damage(&name, |bytes| bytes.truncate(len - 1));
    assert!(matches!(read(&store, &all), Err(PageError::Damaged { .. })));
    store.remove(ID).unwrap();
    let error = read(&store, &all).unwrap_err().to_string();
    assert!(error.starts_with("read 0000000000000000.page: "), "{error}");
}

#[test]
fn page_files_are_reused_and_old_pages_are_not_read() {
    let (disk, store, entries) = written();
    store.remove(ID).unwrap();
    let shorter: Messages = entries[3..].to_vec();
    write(&store, ID + 1, &shorter);
    assert_eq!(disk.files().len(), 1);
    assert!(store.entries(ID).is_err());
    let known: Vec<PageEntry> = shorter.iter().map(|(entry, _)| *entry).collect();
    assert_eq!(store.entries(ID + 1).unwrap(), known);
    // Another life has the same numbers.
    let next = PageStore::open(disk.clone(), 2).unwrap();
    assert!(next.entries(ID + 1).is_err());
    write(&next, ID + 1, &entries);
    assert_eq!(disk.files().len(), 1);
    assert!(matches!(store.entries(ID + 1), Err(PageError::Damaged { .. })));
}

#[test]
fn page_store_keeps_few_free_files() {
    let (disk, store, entries) = written();
    (ID + 1..ID + 200).for_each(|id| write(&store, id, &entries));
    assert_eq!(disk.files().len(), 200);
    (ID..ID + 200).for_each(|id| store.remove(id).unwrap());
    assert_eq!(disk.files().len(), 64);
}

#[test]
fn page_store_keeps_few_files_of_an_earlier_process() {
    let (disk, store, entries) = written();
    (ID + 1..ID + 100).for_each(|id| write(&store, id, &entries));
    disk.create("0000000000000001.log").unwrap();
    let store = PageStore::open(disk.clone(), 2).unwrap();
    assert!(store.entries(ID).is_err());
    write(&store, ID, &entries);
    store.trim().unwrap();
    assert_eq!(disk.files().len(), 64 + 1 + 1, "free ones, a page, a log");
    assert_eq!(store.entries(ID).unwrap().len(), entries.len());
}
