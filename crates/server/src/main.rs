//! The program `leveret`: `leveret [--config FILE] [--data-dir DIR] [--amqp ADDR:PORT] [--http ADDR:PORT]`,
//! `leveret --print-config`, and `leveret check --data-dir DIR`.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    leveret::main()
}
