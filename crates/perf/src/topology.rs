//! Queues and exchanges that a run declares and deletes.

use amqp::method::{ExchangeDeclare, ExchangeDelete, QueueBind, QueueDeclare, QueueDelete};
use amqp::table::{Table, TableBuilder, TableRef, Value};
use anyhow::{Context as _, Result};

use crate::connection::{CHANNEL, Connection};
use crate::target::Target;

/// An argument of a queue, `NAME=VALUE` on the command line: a number if it looks like one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Argument {
    name: String,
    value: ArgumentValue,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum ArgumentValue {
    Number(i64),
    Bool(bool),
    Text(String),
}

impl Argument {
    /// An argument with a text.
    pub(crate) fn text(name: &str, value: &str) -> Self {
        Self { name: name.to_owned(), value: ArgumentValue::Text(value.to_owned()) }
    }

    /// An argument with a number.
    pub(crate) fn number(name: &str, value: i64) -> Self {
        Self { name: name.to_owned(), value: ArgumentValue::Number(value) }
    }
}

impl std::str::FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
        if name.is_empty() || name.len() > 255 {
            return Err("the name of an argument has 1 to 255 bytes".to_owned());
        }
        let value = if let Ok(number) = value.parse() {
            ArgumentValue::Number(number)
        } else if let Ok(bool) = value.parse() {
            ArgumentValue::Bool(bool)
        } else {
            ArgumentValue::Text(value.to_owned())
        };
        Ok(Self { name: name.to_owned(), value })
    }
}

/// A queue to declare.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) name: String,
    pub(crate) arguments: Vec<Argument>,
    /// Keys that bind it to the run's exchange.
    pub(crate) binding_keys: Vec<String>,
}

/// An exchange to declare.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) name: String,
    pub(crate) kind: String,
}

/// Queues and exchanges of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topology {
    pub(crate) is_durable: bool,
    pub(crate) exchange: Option<Exchange>,
    pub(crate) queues: Vec<Queue>,
}

impl Topology {
    /// Deletes the queues and exchanges of an earlier run, then declares those of this one.
    ///
    /// # Errors
    /// When the broker refuses.
    pub(crate) async fn declare(&self, connection: &mut Connection) -> Result<()> {
        self.delete(connection).await?;
        if let Some(Exchange { name, kind }) = &self.exchange {
            let declare = ExchangeDeclare {
                exchange: name,
                exchange_type: kind,
                durable: self.is_durable,
                ..ExchangeDeclare::default()
            };
            connection.call(CHANNEL, declare).await?;
        }
        for queue in &self.queues {
            let arguments = table(&queue.arguments);
            let declare = QueueDeclare {
                queue: &queue.name,
                durable: self.is_durable,
                arguments: arguments.as_ref(),
                ..QueueDeclare::default()
            };
            connection.call(CHANNEL, declare).await.with_context(|| queue.name.clone())?;
            self.bind(queue, connection).await?;
        }
        Ok(())
    }

    async fn bind(&self, queue: &Queue, connection: &mut Connection) -> Result<()> {
        let Some(Exchange { name, .. }) = &self.exchange else {
            return Ok(());
        };
        let mut keys = queue.binding_keys.iter().peekable();
        while let Some(routing_key) = keys.next() {
            let bind = QueueBind {
                queue: &queue.name,
                exchange: name,
                routing_key,
                nowait: keys.peek().is_some(),
                arguments: TableRef::default(),
            };
            if bind.nowait {
                connection.tell(CHANNEL, bind).await?;
            } else {
                connection.call(CHANNEL, bind).await?;
            }
        }
        Ok(())
    }

    /// Deletes all queues and exchanges; missing ones do not matter.
    ///
    /// # Errors
    /// When the broker refuses.
    pub(crate) async fn delete(&self, connection: &mut Connection) -> Result<()> {
        for queue in &self.queues {
            let delete = QueueDelete { queue: &queue.name, ..QueueDelete::default() };
            connection.call(CHANNEL, delete).await?;
        }
        if let Some(Exchange { name, .. }) = &self.exchange {
            let delete = ExchangeDelete { exchange: name, ..ExchangeDelete::default() };
            connection.call(CHANNEL, delete).await?;
        }
        Ok(())
    }

    /// Deletes all queues and exchanges, over a connection of its own.
    ///
    /// # Errors
    /// When the broker cannot be reached or refuses.
    pub(crate) async fn clean_up(&self, target: &Target) -> Result<()> {
        let mut connection = Connection::with_channel(target).await?;
        self.delete(&mut connection).await?;
        connection.close().await
    }
}

fn table(arguments: &[Argument]) -> Table {
    let mut table = TableBuilder::new();
    for Argument { name, value } in arguments {
        let value = match value {
            ArgumentValue::Number(number) => Value::I64(*number),
            ArgumentValue::Bool(bool) => Value::Bool(*bool),
            ArgumentValue::Text(text) => Value::LongStr(text.as_bytes()),
        };
        table.insert(name, value);
    }
    table.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_numbers_booleans_or_texts() {
        let read = |text: &str| text.parse::<Argument>();
        assert_eq!(read("x-max-length=10"), Ok(Argument::number("x-max-length", 10)));
        assert_eq!(read("x-queue-type=quorum"), Ok(Argument::text("x-queue-type", "quorum")));
        let single = read("x-single-active-consumer=true").expect("an argument");
        assert_eq!(single.value, ArgumentValue::Bool(true));
        assert!(read("x").is_err() && read("=1").is_err());
        let table = table(&[Argument::number("x-message-ttl", 5)]);
        assert_eq!(table.get("x-message-ttl"), Some(Value::I64(5)));
    }
}
