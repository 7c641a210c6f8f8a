//! The program `leveret-perf`; everything it does is in the library.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    leveret_perf::main().await
}
