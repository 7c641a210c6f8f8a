//! The limits of memory and disk, changed while the node runs.

use serde_json::{Value, json};

use crate::command::{Call, Command, Section};
use crate::failure::{DATA, Failure};
use crate::format::Output;
use crate::http::path;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Configuration,
        "set_vm_memory_high_watermark",
        "set_vm_memory_high_watermark <fraction> | absolute <value>",
        "Sets the memory watermark that blocks publishers, until the next start of the node",
        |call| set(call, "vm-memory-high-watermark", &memory(call.words)?),
    )
    .words(1, 2)
    .check(|call| memory(call.words).map(drop))
    .banner(|call| {
        let (node, first, second) = (call.node.name(), call.word(0), call.word(1));
        match first {
            "absolute" => format!("Setting memory threshold on {node} to {second} bytes ..."),
            fraction => format!("Setting memory threshold on {node} to {fraction} ..."),
        }
    }),
    Command::new(
        Section::Configuration,
        "set_disk_free_limit",
        "set_disk_free_limit <disk_limit> | mem_relative <fraction>",
        "Sets the limit of free disk space that blocks publishers, until the next start of the node",
        |call| set(call, "disk-free-limit", &disk(call.words)?),
    )
    .words(1, 2)
    .check(|call| disk(call.words).map(drop))
    .banner(|call| {
        let (node, first, second) = (call.node.name(), call.word(0), call.word(1));
        match first {
            "mem_relative" => {
                format!("Setting disk free limit on {node} to {second} times the total RAM ...")
            }
            limit => format!("Setting disk free limit on {node} to {limit} bytes ..."),
        }
    }),
];

fn set(call: &Call<'_>, what: &str, value: &Value) -> Result<Output, Failure> {
    call.node.api.put(&path(&["nodes", call.node.name(), what]), value)?;
    Ok(Output::Done)
}

fn memory(words: &[String]) -> Result<Value, Failure> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["absolute"] => Err(Failure::not_enough_arguments()),
        ["absolute", value] => Ok(json!({"absolute": bytes(value)?})),
        [fraction] => match fraction.parse::<f64>() {
            Ok(fraction) if (0.0..=1.0).contains(&fraction) => Ok(json!({"relative": fraction})),
            Ok(_) => {
                let problem = "The threshold should be a fraction between 0.0 and 1.0";
                Err(Failure::bad_argument(Some(problem)))
            }
            Err(_) => Err(Failure::bad_argument(None)),
        },
        _ => Err(Failure::too_many_arguments()),
    }
}

fn disk(words: &[String]) -> Result<Value, Failure> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["mem_relative"] => Err(Failure::not_enough_arguments()),
        ["mem_relative", value] => match value.parse::<f64>() {
            Ok(multiple) if multiple.is_finite() && multiple >= 0.0 => {
                Ok(json!({"mem_relative": multiple}))
            }
            _ => Err(Failure::bad_argument(None)),
        },
        [limit] => Ok(json!({"absolute": bytes(limit)?})),
        _ => Err(Failure::too_many_arguments()),
    }
}

/// A number of bytes; a unit of one letter is a power of 1024 in RabbitMQ's tools.
fn bytes(text: &str) -> Result<u64, Failure> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (amount, unit) = text.split_at(digits);
    let factor: u64 = match unit {
        "" => 1,
        "k" | "kiB" | "K" | "KiB" | "Ki" | "ki" => 1 << 10,
        "M" | "MiB" | "Mi" => 1 << 20,
        "G" | "GiB" | "Gi" => 1 << 30,
        "T" | "TiB" | "Ti" => 1 << 40,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return Err(Failure::bad_argument(None)),
    };
    let amount: u64 = amount.parse().map_err(|_| Failure::bad_argument(None))?;
    amount.checked_mul(factor).ok_or_else(|| Failure::arguments(DATA, "Bad argument."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn watermarks() {
        assert_eq!(memory(&words("0.4")), Ok(json!({"relative": 0.4})));
        assert_eq!(memory(&words("absolute 1GiB")), Ok(json!({"absolute": 1 << 30})));
        assert_eq!(disk(&words("50MB")), Ok(json!({"absolute": 50_000_000})));
        assert_eq!(disk(&words("mem_relative 1.5")), Ok(json!({"mem_relative": 1.5})));
        for wrong in ["2", "-1", "abc", "absolute", "absolute x", "absolute 1 2", "0.4 x"] {
            assert!(memory(&words(wrong)).is_err(), "{wrong}");
        }
        for wrong in ["abc", "50GBx", "mem_relative", "mem_relative x", "99999999999999999999"] {
            assert!(disk(&words(wrong)).is_err(), "{wrong}");
        }
    }
}
