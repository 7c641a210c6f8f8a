//! The benchmarks by instructions: `instructions list`, `instructions run CASE`.
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
        ["time", name, fill] => {
            let case = CASES.iter().find(|case| case.name == *name).unwrap();
            let mut run = (case.begin)();
            let cpu = || {
                let t = std::fs::read_to_string("/proc/self/schedstat").unwrap();
                t.split(' ').next().unwrap().parse::<u64>().unwrap()
            };
            let n: u64 = fill.parse().unwrap();
            for part in 0..10 {
                let a = cpu();
                run(n / 10 / 64 * 64);
                println!("{part}: {} ns", (cpu() - a) / (n / 10));
            }
            for part in 0..5 {
                let a = cpu();
                run(65536);
                println!("then {part}: {} ns", (cpu() - a) / 65536);
            }
            std::process::exit(0);
        }
        _ => {
            eprintln!("instructions list | instructions run CASE");
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
