//! Explanations agree with the settings in force: for any arguments and policies, each value is the one that
//! the queue uses, its source is the one that gave it, and every source of another value is listed as
//! overridden.

use amqp::table::{Table, TableBuilder, Value};
use broker::time::Now;
use broker::{
    ApplyTo, Command, DeclareQueue, Definition, ExplainedKey, Explanation, Pattern, Policy,
    PolicyKey, PolicyKind, PolicyValue, Queue, Ratio, RetryDelays, Settings, Source, Vhost,
    VhostOptions,
};
use proptest::prelude::*;

type Entries = Vec<(&'static str, PolicyValue)>;

fn number(key: &'static str) -> BoxedStrategy<(&'static str, PolicyValue)> {
    (1_i64..6).prop_map(move |value| (key, PolicyValue::Integer(value))).boxed()
}

fn word(
    key: &'static str,
    words: &'static [&'static str],
) -> BoxedStrategy<(&'static str, PolicyValue)> {
    let word = prop::sample::select(words);
    word.prop_map(move |word| (key, PolicyValue::Text(word.to_owned()))).boxed()
}

fn one_of(
    key: &'static str,
    values: Vec<PolicyValue>,
) -> BoxedStrategy<(&'static str, PolicyValue)> {
    prop::sample::select(values).prop_map(move |value| (key, value)).boxed()
}

fn entry() -> impl Strategy<Value = (&'static str, PolicyValue)> {
    prop_oneof![
        number("message-ttl"),
        number("expires"),
        number("max-length"),
        number("max-length-bytes"),
        word("overflow", &["drop-head", "reject-publish", "reject-publish-dlx"]),
        word("dead-letter-exchange", &["a", "b", ""]),
        word("dead-letter-routing-key", &["k", "l"]),
        word("dead-letter-strategy", &["at-most-once", "at-least-once"]),
        (-2_i64..4).prop_map(|value| ("delivery-limit", PolicyValue::Integer(value))),
        number("consumer-timeout"),
        word("delayed-retry-type", &["all", "failed", "returned", "disabled"]),
        number("delayed-retry-min"),
        number("delayed-retry-max"),
        one_of("delayed-retry-multiplier", vec![PolicyValue::Integer(2), PolicyValue::Float(1.5)],),
        one_of("delayed-retry-jitter", vec![PolicyValue::Float(0.25)]),
        word("delayed-retry-schedule", &["1s,2s", "5"]),
        word("delayed-retry-count", &["delivery", "acquired"]),
        word("delivery-limit-count", &["delivery", "acquired"]),
        word("delivery-limit-action", &["drop", "keep"]),
        word("delayed-retry-order", &["due", "strict"]),
        word("expiry-order", &["deadline", "head"]),
        word("queue-mode", &["lazy"]),
    ]
}

fn entries() -> impl Strategy<Value = Entries> {
    prop::collection::vec(entry(), 0..9).prop_map(|mut entries| {
        entries.sort_by_key(|(key, _)| *key);
        entries.dedup_by_key(|(key, _)| *key);
        entries
    })
}

fn arguments(is_quorum: bool, entries: &Entries) -> Table {
    let mut table = TableBuilder::new();
    table.insert("x-queue-type", Value::LongStr(if is_quorum { b"quorum" } else { b"classic" }));
    for (key, value) in entries {
        let value = match value {
            PolicyValue::Integer(value) => Value::I64(*value),
            PolicyValue::Text(text) => Value::LongStr(text.as_bytes()),
            PolicyValue::Float(value) => Value::F64(*value),
            PolicyValue::Other(_) => unreachable!(),
        };
        if *key == "delayed-retry-order" && value == Value::LongStr(b"strict") {
            table.insert("x-single-active-consumer", Value::Bool(true));
        }
        table.insert(format!("x-{key}"), value);
    }
    table.finish()
}

/// A policy with these keys, or with those of them that are valid.
fn policy(name: &str, priority: f64, kind: PolicyKind, entries: &Entries) -> Option<Policy> {
    let entries = entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
    let mut entries: Vec<_> = entries.collect();
    while !entries.is_empty() {
        if let Ok(definition) = Definition::parse(entries.clone(), kind) {
            let pattern = Pattern::new("q").unwrap();
            let apply_to = ApplyTo::All;
            return Some(Policy { name: name.into(), pattern, apply_to, priority, definition });
        }
        entries.pop();
    }
    None
}

fn explained(explanation: &Explanation, key: PolicyKey) -> Option<&ExplainedKey> {
    explanation.keys.iter().find(|explained| explained.key == key)
}

/// The value that settings stand for; `None` if they do not say.
fn in_force(settings: &Settings, key: PolicyKey) -> Option<PolicyValue> {
    let number = |value: Option<u64>| Some(PolicyValue::Integer(value?.try_into().unwrap()));
    let text = |value: &str| Some(PolicyValue::Text(value.to_owned()));
    let retry = settings.delayed_retry.as_ref();
    let (min, max, multiplier, schedule) = match retry.map(|retry| &retry.delays) {
        Some(RetryDelays::Linear { min_ms, max_ms }) => (Some(*min_ms), Some(*max_ms), None, None),
        Some(RetryDelays::Exponential { min_ms, max_ms, multiplier }) => {
            (Some(*min_ms), Some(*max_ms), Some(*multiplier), None)
        }
        Some(RetryDelays::Schedule(schedule)) => (None, None, None, Some(schedule.as_str())),
        None => (None, None, None, None),
    };
    let ratio = |ratio: Option<Ratio>| {
        let number = ratio?.as_f64();
        Some(if number == 2.0 { PolicyValue::Integer(2) } else { PolicyValue::Float(number) })
    };
    match key {
        PolicyKey::MessageTtl => number(settings.message_ttl_ms),
        PolicyKey::Expires => number(settings.expires_ms),
        PolicyKey::MaxLength => number(settings.max_length),
        PolicyKey::MaxLengthBytes => number(settings.max_length_bytes),
        PolicyKey::Overflow => text(settings.overflow.as_str()),
        PolicyKey::DeadLetterExchange => text(&settings.dead_letter.as_ref()?.exchange),
        PolicyKey::DeadLetterRoutingKey => {
            text(settings.dead_letter.as_ref()?.routing_key.as_ref()?.as_str()?)
        }
        PolicyKey::DeadLetterStrategy => text(settings.dead_letter_strategy.as_str()),
        PolicyKey::DeliveryLimit => number(settings.delivery_limit.map(u64::from)),
        PolicyKey::ConsumerTimeout => number(settings.consumer_timeout_ms),
        PolicyKey::DelayedRetryType => text(retry.map_or("disabled", |retry| retry.kind.as_str())),
        PolicyKey::DelayedRetryMin => number(min),
        PolicyKey::DelayedRetryMax => number(max),
        PolicyKey::DelayedRetryMultiplier => ratio(multiplier),
        PolicyKey::DelayedRetryJitter => ratio(retry.and_then(|retry| retry.jitter)),
        PolicyKey::DelayedRetrySchedule => text(schedule?),
        PolicyKey::DelayedRetryCount => text(retry?.count.as_str()),
        PolicyKey::DelayedRetryOrder => text(settings.delayed_retry_order.as_str()),
        PolicyKey::DeliveryLimitAction => text(settings.delivery_limit_action.as_str()),
        PolicyKey::DeliveryLimitCount => text(settings.delivery_limit_count.as_str()),
        PolicyKey::ExpiryOrder => text(settings.expiry_order.as_str()),
        _ => None,
    }
}

/// The values for `key` from the argument and from each policy in force.
fn given(queue: &Queue, arguments: &Entries, key: PolicyKey) -> Vec<(Source, PolicyValue)> {
    let argument = arguments.iter().find(|(name, _)| *name == key.as_str());
    let argument = argument.map(|(_, value)| (Source::Argument, value.clone()));
    let said = |source, kind| {
        let policy = queue.policies.of_kind(kind)?;
        Some((source, policy.definition.get(key)?))
    };
    let user = said(Source::Policy, PolicyKind::User);
    let operator = said(Source::OperatorPolicy, PolicyKind::Operator);
    argument.into_iter().chain(user).chain(operator).collect()
}

fn check(vhost: &Vhost, arguments: &Entries) -> Result<(), TestCaseError> {
    let queue = vhost.queue("q").unwrap();
    let explanation = vhost.explain_queue("q").unwrap();
    prop_assert_eq!(&explanation.policies, &queue.policies);
    for key in PolicyKey::ALL.iter().copied() {
        let given = given(queue, arguments, key);
        let Some(explained) = explained(&explanation, key) else {
            prop_assert!(given.is_empty(), "{key:?} is not explained: {given:?}");
            continue;
        };
        let is_unlimited = key == PolicyKey::DeliveryLimit
            && matches!(explained.value, Some(PolicyValue::Integer(..0)));
        let told = explained.value.clone().filter(|_| !is_unlimited);
        let applies = queue.kind().as_str() == "quorum" || told.is_some();
        if applies {
            prop_assert_eq!(told, in_force(&queue.settings, key), "{:?}", key);
        }
        let lost = explained.lost.iter().map(|lost| (lost.source, lost.value.clone()));
        let named = |source: Source| match source {
            Source::Policy => queue.policies.user.as_ref().map(|policy| policy.name.clone()),
            Source::OperatorPolicy => queue.policies.operator.as_ref().map(|p| p.name.clone()),
            Source::Argument | Source::Default => None,
        };
        prop_assert_eq!(&explained.source_name, &named(explained.source), "{:?}", key);
        // Each policy in force is listed once, as winner or as loser.
        let won = explained.value.clone().map(|value| (explained.source, value));
        let mut told: Vec<_> = won.into_iter().chain(lost).collect();
        told.retain(|(source, _)| *source != Source::Default);
        let others = explained.lost.iter().filter(|lost| lost.source_name != named(lost.source));
        prop_assert_eq!(told.len() - others.count(), given.len(), "{:?}", key);
        for one in &given {
            prop_assert!(told.contains(one), "{key:?}: {one:?} is not told in {told:?}");
        }
    }
    Ok(())
}

fn at(millis: u64) -> Now {
    Now::from_millis(millis)
}

proptest! {
    #[test]
    fn explanation_agrees_with_settings_in_force(
        is_quorum: bool,
        mut said in entries(),
        policies in prop::collection::vec((any::<bool>(), 0_i32..3, entries()), 0..4),
    ) {
        // An argument without effect decides nothing.
        said.retain(|(key, _)| *key != "queue-mode");
        let mut vhost = Vhost::new("/", [0; 32], VhostOptions::default());
        let table = arguments(is_quorum, &said);
        let declare = DeclareQueue {
            queue: "q",
            passive: false,
            durable: true,
            exclusive: false,
            auto_delete: false,
            nowait: true,
            arguments: table.as_ref(),
        };
        // Not every combination of arguments may be declared.
        prop_assume!(vhost.execute(at(0), Command::DeclareQueue(declare)).is_ok());
        check(&vhost, &said)?;
        for (i, (by_operator, priority, entries)) in policies.iter().enumerate() {
            let kind = if *by_operator { PolicyKind::Operator } else { PolicyKind::User };
            let policy = policy(&format!("p{i}"), f64::from(*priority), kind, entries);
            if let Some(policy) = policy {
                vhost.set_policy(at(0), kind, policy);
                check(&vhost, &said)?;
            }
        }
    }
}

/// A vhost with a queue that has these arguments, and these user policies.
fn vhost(is_quorum: bool, said: &Entries, policies: &[(&str, f64, Entries)]) -> Vhost {
    let mut vhost = Vhost::new("/", [0; 32], VhostOptions::default());
    let table = arguments(is_quorum, said);
    let declare = DeclareQueue {
        queue: "q",
        passive: false,
        durable: true,
        exclusive: false,
        auto_delete: false,
        nowait: true,
        arguments: table.as_ref(),
    };
    vhost.execute(at(0), Command::DeclareQueue(declare)).unwrap();
    for (name, priority, entries) in policies {
        let policy = policy(name, *priority, PolicyKind::User, entries).unwrap();
        vhost.set_policy(at(0), PolicyKind::User, policy);
    }
    vhost
}

fn why(vhost: &Vhost, key: PolicyKey) -> Vec<String> {
    let explanation = vhost.explain_queue("q").unwrap();
    let explained = explained(&explanation, key).unwrap();
    explained.lost.iter().map(|lost| lost.why.clone()).collect()
}

#[test]
fn explanation_names_the_winner_of_each_lost_value() {
    let five = |key| vec![(key, PolicyValue::Integer(5))];
    let vhost = vhost(
        false,
        &vec![("message-ttl", PolicyValue::Integer(7))],
        &[
            ("low", 0.0, five("message-ttl")),
            (
                "high",
                1.0,
                vec![
                    ("message-ttl", PolicyValue::Integer(5)),
                    ("consumer-timeout", PolicyValue::Integer(5)),
                    ("dead-letter-routing-key", PolicyValue::Text("k".to_owned())),
                    ("queue-mode", PolicyValue::Text("lazy".to_owned())),
                ],
            ),
            ("quorum", 2.0, five("delivery-limit")),
        ],
    );
    assert_eq!(
        why(&vhost, PolicyKey::MessageTtl),
        [
            "the lower value applies, which is that of the policy",
            "only one policy applies, and high has a higher priority",
        ]
    );
    assert_eq!(why(&vhost, PolicyKey::ConsumerTimeout), ["classic queues have no such setting"]);
    assert_eq!(
        why(&vhost, PolicyKey::DeadLetterRoutingKey),
        ["without effect: there is no dead-letter-exchange"]
    );
    assert_eq!(why(&vhost, PolicyKey::QueueMode), ["accepted, but without effect"]);
    assert_eq!(
        why(&vhost, PolicyKey::DeliveryLimit),
        ["its key delivery-limit keeps the whole policy from classic queues"]
    );
}
