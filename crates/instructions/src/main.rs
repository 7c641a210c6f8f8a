//! The benchmarks by instructions: `instructions list`, `instructions run CASE`, and `instructions time CASE MESSAGES`
//! for the processor time of a case in which many messages wait.
//!
//! Decides nothing but which case runs. Each case handles messages, first to get warm, then as many
//! again inside [`measured`], which `cargo xtask instructions` has callgrind count. With the
//! broker's allocator, optimised as the broker is, so that the counted code is the code that ships. A
//! program and not a benchmark for cargo, because benchmarks are compiled to unwind: everything would be
//! compiled a second time, and otherwise than it ships. A crate of its own, because linking the server
//! takes longer than counting.
#![allow(clippy::print_stdout, reason = "a program whose list is read by another")]
#![allow(clippy::print_stderr, reason = "a program for people")]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "cases care for a few of what can come, and fail at the rest"
)]

mod bytes;
mod case;
mod cases;
mod codec;
mod commands;
mod processor_time;
mod samples;
mod whole;

use std::process::ExitCode;

use case::{Case, Run};
use cases::CASES;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["list"] => {
            for Case { name, messages, .. } in CASES {
                println!("{messages} {name}");
            }
        }
        ["run", name] => {
            let Some(case) = CASES.iter().find(|case| case.name == *name) else {
                eprintln!("there is no case {name}");
                return ExitCode::FAILURE;
            };
            let mut run = (case.begin)();
            run(case.messages);
            measured(&mut run, case.messages);
            // The run is not dropped: freeing it would be counted, and belongs to no message.
            std::mem::forget(run);
        }
        ["time", name, messages] => {
            let case = CASES.iter().find(|case| case.name == *name);
            let (Some(case), Ok(messages)) = (case, messages.parse()) else {
                eprintln!("there is no case {name}, or {messages} is no number");
                return ExitCode::FAILURE;
            };
            processor_time::print(case, messages);
        }
        _ => {
            eprintln!(
                "instructions list | instructions run CASE | instructions time CASE MESSAGES"
            );
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The counted code: a function of its own, by whose name the counting begins.
#[inline(never)]
fn measured(run: &mut Run, messages: u64) {
    run(messages);
}
