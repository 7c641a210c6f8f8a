//! The HTTP client of RabbitMQ's developers, which rabbitmqadmin is made with: everything that it offers and
//! that needs no plugin, once with the version that the program names.

mod calls;

use std::env;
use std::fmt::Debug;
use std::process::ExitCode;

/// Results of all calls.
#[derive(Default)]
struct Calls {
    count: u32,
    failed: Vec<String>,
}

impl Calls {
    /// Counts a call, whose answer must be there and understood.
    fn take<T, E: Debug>(&mut self, name: &str, answer: Result<T, E>) -> Option<T> {
        self.count += 1;
        answer.map_err(|error| self.failed.push(format!("{name}: {error:?}"))).ok()
    }

    /// Counts a call, whose answer must be understood and be so.
    fn check<T, E: Debug>(
        &mut self,
        name: &str,
        answer: Result<T, E>,
        is_right: impl Fn(&T) -> bool,
    ) where
        T: Debug,
    {
        if let Some(answer) = self.take(name, answer)
            && !is_right(&answer)
        {
            self.failed.push(format!("{name}: {answer:?}"));
        }
    }
}

mod version_0_90 {
    crate::calls::calls!(rabbitmq_http_client_0_90);
}

mod version_0_93 {
    crate::calls::calls!(rabbitmq_http_client_0_93);
}

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let version = arguments.next().unwrap_or_default();
    println!("version {version}");
    let http = env::var("HTTP_URL").expect("HTTP_URL is set");
    let endpoint = format!("{http}/api");
    let mut code = ExitCode::SUCCESS;
    for name in arguments {
        let mut calls = Calls::default();
        match version.as_str() {
            "0.90.0" => version_0_90::all(&endpoint, &mut calls),
            "0.93.0" => version_0_93::all(&endpoint, &mut calls),
            other => calls.failed.push(format!("version {other} is not built in")),
        }
        for failed in &calls.failed {
            println!("{failed}");
        }
        match calls.failed.first() {
            None => {
                println!("figure {} calls are answered and understood", calls.count);
                println!("ok {name}");
            }
            Some(first) => {
                println!("failed {name}: {} of {} calls, {first}", calls.failed.len(), calls.count);
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
