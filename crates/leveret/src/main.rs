//! The program `leveret`: `leveret [--config FILE] [--data-dir DIR] [--amqp ADDR:PORT] [--http ADDR:PORT]`,
//! `leveret --print-config`, and `leveret check --data-dir DIR`.

mod allocator;
mod cli;
mod limits;

use std::process::ExitCode;

use clap::Parser;
use server::Process;
use server::limits::EXIT_CONFIG;

use crate::cli::Arguments;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    allocator::decline_huge_pages();
    let arguments = Arguments::parse();
    if let Some(page) = arguments.man_page() {
        return cli::print_man_page(page);
    }
    let mut config = match arguments.config() {
        Ok(config) => config,
        Err(error) => return cli::refuse(&error, EXIT_CONFIG),
    };
    if let Err(error) = config.make_data_dir_absolute() {
        return cli::fail(&error, 1);
    }
    if arguments.checks() {
        return server::check_data_dir(config.data_dir());
    }
    if arguments.prints_config() {
        return cli::print_config(&config);
    }
    let process = match Process::begin(config) {
        Ok(process) => process,
        Err(error) => return cli::fail(&error, error.exit_code()),
    };
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1) {
        // One works for a vhost, another one hears the clients of the others.
        threads.worker_threads(2);
    }
    let runtime = match threads.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return cli::fail(&error, 1),
    };
    runtime.spawn(allocator::give_back());
    match runtime.block_on(process.live(management::SERVICES)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if tracing::enabled!(tracing::Level::ERROR) => {
            tracing::error!("{error}");
            ExitCode::from(error.exit_code())
        }
        Err(error) => cli::fail(&error, error.exit_code()),
    }
}
