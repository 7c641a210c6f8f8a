"""The five documents that Leveret implements, sentence by sentence: each row is a document, what it says about
behaviour in a few words, and the proof: a check in this file, or the test elsewhere that proves it in detail.

Documents: 0 and 2 are Chinese guides to TTL, 1 a Chinese guide to dead-letter exchanges, 3 a Russian guide to TTL, 4
the English text of RabbitMQ's guide of 2013 with a Chinese translation. Where a document is older than RabbitMQ 4.3 and
RabbitMQ changed, the row says so; where Leveret deliberately does better, the proof is a test with the marker `better`.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

import test_at_least_once as at_least_once
import test_dead_letter_cycles as cycles
import test_dead_letter_declaration as declaration
import test_dead_letter_routing as routing
import test_dead_lettering as dead_lettering
import test_death_headers as death
import test_definitions as definitions
import test_expiry as expiry
import test_length_limits as limits
import test_message_ttl as ttl
import test_policies as policies
import test_queue_ttl as queue_ttl
from expectations import dead_letters_to

# --- checks: the documents' own examples, with shorter times


def sixty_seconds_by_argument(ch):
    """args.put("x-message-ttl", 60000); channel.queueDeclare("myqueue", false, false, false, args)"""
    q = ch.queue(name="myqueue", durable=False, message_ttl=60000)
    ch.publish(q, "Hello, world!")
    assert ch.stays(q, 1, 0.1)
    q = ch.queue(name="myqueue", durable=False, message_ttl=100)
    ch.publish(q, "Hello, world!")
    ch.reaches(q, 0)


def sixty_seconds_by_property(ch):
    """.expiration("60000"), basicPublish("my-exchange", "routing-key", properties, messageBodyBytes)"""
    x, q = ch.exchange("direct", name="my-exchange"), ch.queue()
    ch.bind(q, x, "routing-key")
    ch.publish("routing-key", "Hello, world!", exchange=x, expiration="60000")
    message = ch.get(q)
    assert (message.body, message.properties.expiration) == ("Hello, world!", "60000")
    ch.publish("routing-key", "Hello, world!", exchange=x, expiration="100")
    ch.reaches(q, 0)


def thirty_minutes_by_argument(ch):
    """args.put("x-expires", 1800000); channel.queueDeclare("myqueue", false, false, false, args)"""
    q = ch.queue(name="myqueue", durable=False, expires=1800000)
    ch.pause(0.1)
    assert not ch.is_gone(q)
    ch.vanishes(ch.queue(name="myqueue", durable=False, expires=300))


def order_system_and_sms_sender(ch):
    """The program of document 0: a hundred orders at once into a queue with a TTL, a slow sender with prefetch 1."""
    dlq = ch.queue(name="expired")
    q = ch.queue(name="sms.ttl", message_ttl=3000, **dead_letters_to(dlq))
    sender = ch.connection.channel()
    consumer = sender.consume(q, prefetch=1)
    orders = [f"passenger {n}" for n in range(100, 200)]
    ch.publish(q, *orders)
    sent = []
    while len(sent) + ch.count(dlq) < len(orders):
        if len(consumer.messages) > consumer.taken:
            message = consumer.next()
            sent.append(message.body)
            ch.pause(0.05)
            sender.ack(message)
        else:
            ch.pause(0.02)
    expired = ch.drain(dlq)
    # in order, none twice, none lost; orders that came some milliseconds later may be sent after earlier ones expired
    assert sent == sorted(sent) and expired == sorted(expired)
    assert sorted(sent + expired) == orders
    assert len(expired) > 0 and len(sent) > 1


def dead_letter_exchange_by_argument(ch):
    """exchangeDeclare("some.exchange.name", "direct"); args.put("x-dead-letter-exchange", "some.exchange.name")"""
    dlx, dlq = ch.exchange("direct", name="some.exchange.name"), ch.queue(name="dlq")
    q = ch.queue(name="myqueue", durable=False, dead_letter_exchange=dlx)
    ch.bind(dlq, dlx, q)
    ch.publish(q, "m")
    ch.nack(ch.get_unacked(q))
    assert ch.take(dlq).body == "m"


def one_exchange_for_both(ch):
    """The example under document 1: queue and dead-letter queue on one exchange, with different routing keys."""
    x = ch.exchange("direct", name="demo.exchange")
    dead = ch.queue(name="demo.dead.letter.queue")
    q = ch.queue(
        name="demo.queue", message_ttl=150, dead_letter_exchange=x, dead_letter_routing_key="demo.dead.routing.key"
    )
    ch.bind(q, x, "demo.routing.key")
    ch.bind(dead, x, "demo.dead.routing.key")
    ch.publish("demo.routing.key", "Hello World!", exchange=x)
    message = ch.take(dead)
    assert (message.body, message.routing_key, message.deaths) == (
        "Hello World!", "demo.dead.routing.key", [(q, "expired", 1)],
    )


def a_message_already_on_its_way_is_not_called_back(ch):
    """The natural race: what was handed over before its deadline may be seen after it."""
    q = ch.queue()
    consumer = ch.consume(q)
    ch.publish(q, "m", expiration="50")
    message = consumer.next()
    ch.pause(0.15)
    ch.ack(message)
    ch.sync()
    assert ch.count(q) == 0


def a_consumer_clears_what_expired_behind_the_head(ch):
    """Consumers that are there take the head away, and what expired behind it goes at once."""
    q = ch.queue()
    ch.publish(q, "head")
    ch.publish(q, *["expired"] * 20, expiration="50")
    ch.publish(q, "tail")
    ch.pause(0.2)
    consumer = ch.consume(q)
    assert consumer.next_bodies(2) == ["head", "tail"]
    assert ch.count(q) == 0


def purging_and_deleting_free_what_waits(ch):
    q = ch.queue()
    ch.publish(q, "head")
    ch.publish(q, "brief", expiration="60000")
    assert ch.purge(q) == 2
    ch.publish(q, "m", expiration="60000")
    assert ch.delete(q) == 1


def a_queue_ttl_never_leaves_expired_messages_waiting(ch):
    """With one TTL for the whole queue the oldest is always the first to expire."""
    q = ch.queue(message_ttl=300)
    for n in range(5):
        ch.publish(q, str(n))
        ch.pause(0.05)
    ch.reaches(q, 0)


def message_ttl_and_queue_ttl_are_different_things(ch):
    messages, queue = ch.queue(message_ttl=200), ch.queue(expires=600)
    ch.publish(messages, "m")
    ch.publish(queue, "m")
    ch.pause(0.3)
    assert ch.count(messages) == 0
    ch.vanishes(queue)
    assert not ch.is_gone(messages)


def a_32_bit_bound_no_longer_exists(ch):
    ch.queue(message_ttl=2**32)
    ch.queue(expires=2**32)


class Row(NamedTuple):
    document: int
    sentence: str
    proof: Callable


NEEDS_A_RESTART = None

ROWS = [
    # --- document 0
    Row(0, "TTL can be given to messages and queues, by arguments", sixty_seconds_by_argument),
    Row(0, "... and by policies", ttl.test_message_ttl_can_come_from_a_policy),
    Row(0, "message TTL is how long a message may stay in a queue before it is consumed",
        ttl.test_a_message_leaves_when_the_queue_ttl_has_passed_and_not_before),
    Row(0, "an expired message is removed: not delivered to any subscriber",
        expiry.test_basic_deliver_never_carries_an_expired_message),
    Row(0, "... and not obtainable by basic.get", expiry.test_basic_get_never_returns_an_expired_message),
    Row(0, "message TTL can be set for one message",
        ttl.test_a_message_leaves_when_its_own_ttl_has_passed_and_not_before),
    Row(0, "... for one queue", ttl.test_every_message_has_the_whole_queue_ttl_to_itself),
    Row(0, "... or for a group of queues", policies.test_a_policy_of_another_name_pattern_leaves_a_queue_alone),
    Row(0, "a TTL can be set on the queue itself",
        queue_ttl.test_an_unused_queue_goes_when_its_lease_is_over_and_not_before),
    Row(0, "queue TTL works together with auto-delete", queue_ttl.test_expires_works_together_with_auto_delete),
    Row(0, "queue TTL suits non-durable classic queues", queue_ttl.test_every_sort_of_classic_queue_may_expire),
    Row(0, "streams do not support expiry", queue_ttl.test_a_stream_takes_no_x_expires),
    Row(0, "streams do not support message TTL either", ttl.test_a_stream_takes_no_x_message_ttl),
    Row(0, "a queue without consumers is deleted after its TTL",
        queue_ttl.test_the_lease_starts_again_when_the_last_consumer_goes),
    Row(0, "administrators can enforce TTL rules by operator policies",
        ttl.test_the_lowest_of_argument_policy_and_operator_policy_counts),
    Row(0, "message-ttl by policy, or the same by an argument at declaration",
        ttl.test_message_ttl_can_come_from_a_policy),
    Row(0, "a message older than the TTL is expired",
        ttl.test_a_message_leaves_when_the_queue_ttl_has_passed_and_not_before),
    Row(0, "a message in several queues expires in each at its own time or not at all",
        ttl.test_a_message_expires_in_each_queue_on_its_own),
    Row(0, "its expiry in one queue does not affect the others", ttl.test_a_message_expires_in_each_queue_on_its_own),
    Row(0, "expired messages are never in basic.deliver", expiry.test_basic_deliver_never_carries_an_expired_message),
    Row(0, "... and never in basic.get-ok", expiry.test_basic_get_never_returns_an_expired_message),
    Row(0, "messages are removed at their deadline or shortly after",
        ttl.test_a_message_leaves_when_the_queue_ttl_has_passed_and_not_before),
    Row(0, "a TTL is a non-negative integer", ttl.test_x_message_ttl_out_of_range_is_refused),
    Row(0, "1000 means one second, or until it is delivered to a consumer",
        ttl.test_an_unacked_message_outlives_its_deadline_and_can_be_acked),
    Row(0, "the argument may be a short-short-int, short-int, long-int or long-long-int",
        ttl.test_x_message_ttl_may_be_of_any_integer_type),
    Row(0, "example: a queue that keeps messages for 60 seconds", sixty_seconds_by_argument),
    Row(0, "a TTL policy may be applied to a queue that has messages",
        ttl.test_a_ttl_policy_reaches_messages_that_wait_already),
    Row(0, "a requeued message keeps its deadline: requeue", ttl.test_a_requeued_message_keeps_its_deadline),
    Row(0, "... channel closure", ttl.test_a_message_given_back_after_its_deadline_dies_as_expired),
    Row(0, "TTL 0 expires messages on arrival", expiry.test_zero_ttl_message_without_a_consumer_dies_at_once),
    Row(0, "... unless they can be delivered to a consumer immediately",
        expiry.test_a_zero_ttl_message_is_delivered_to_a_consumer_that_can_take_it),
    Row(0, "the immediate flag is not supported", expiry.test_immediate_is_not_implemented),
    Row(0, "TTL 0 makes no basic.return", expiry.test_a_zero_ttl_message_is_confirmed_and_never_returned),
    Row(0, "... and dead-letters when there is a dead-letter exchange",
        expiry.test_zero_ttl_message_without_a_consumer_dies_at_once),
    Row(0, "a publisher sets a TTL by the property expiration, in milliseconds",
        ttl.test_a_message_leaves_when_its_own_ttl_has_passed_and_not_before),
    Row(0, "the constraints are those of x-message-ttl", ttl.test_any_other_expiration_closes_the_channel),
    Row(0, "only the string form of a number is accepted", ttl.test_any_other_expiration_closes_the_channel),
    Row(0, "of queue TTL and message TTL the lower one counts", ttl.test_the_lower_of_queue_ttl_and_message_ttl_counts),
    Row(0, "example: publishing a message that may stay for 60 seconds", sixty_seconds_by_property),
    Row(0, "expired messages are really dropped only at the head (Leveret: wherever they stand)",
        expiry.test_a_message_behind_one_that_lives_longer_leaves_in_time),
    Row(0, "consumers never receive expired messages", expiry.test_basic_deliver_never_carries_an_expired_message),
    Row(0, "a message may expire between being sent and arriving", a_message_already_on_its_way_is_not_called_back),
    Row(0, "expired messages may pile up behind others and count in statistics (Leveret: they do not)",
        expiry.test_a_message_behind_one_that_lives_longer_leaves_in_time),
    Row(0, "... until those are consumed", a_consumer_clears_what_expired_behind_the_head),
    Row(0, "... or expire themselves", expiry.test_dead_letters_leave_in_the_order_of_their_deadlines),
    Row(0, "they hold resources meanwhile (Leveret: they use up no limit)",
        expiry.test_an_expired_message_behind_the_head_does_not_use_up_the_length_limit),
    Row(0, "consumers speed up the clearing", a_consumer_clears_what_expired_behind_the_head),
    Row(0, "to free resources use a queue's TTL ...", a_queue_ttl_never_leaves_expired_messages_waiting),
    Row(0, "... or purge or delete the queue", purging_and_deleting_free_what_waits),
    Row(0, "unused means: no consumers", queue_ttl.test_a_queue_with_a_consumer_never_expires),
    Row(0, "... not redeclared, which renews the lease",
        queue_ttl.test_a_redeclaration_renews_the_lease_of_a_classic_queue),
    Row(0, "... on quorum queues too (Leveret only)",
        queue_ttl.test_a_redeclaration_renews_the_lease_of_a_quorum_queue),
    Row(0, "... and no basic.get for the whole period",
        queue_ttl.test_basic_get_renews_the_lease_even_when_it_finds_nothing),
    Row(0, "reply queues that are never drained are removed",
        queue_ttl.test_publishing_binding_and_purging_do_not_renew_the_lease),
    Row(0, "an unused queue is removed after its TTL, though perhaps not at once",
        queue_ttl.test_an_unused_queue_goes_when_its_lease_is_over_and_not_before),
    Row(0, "queue TTL by x-expires or by the policy expires", queue_ttl.test_expires_can_come_from_a_policy),
    Row(0, "it must be positive, unlike a message TTL",
        queue_ttl.test_x_expires_must_be_positive_and_at_most_ten_years),
    Row(0, "example: a queue that may be unused for 30 minutes", thirty_minutes_by_argument),
    Row(0, "example: orders into a queue with a TTL and a slow sender", order_system_and_sms_sender),
    # --- document 1
    Row(1, "a rejected message is dead-lettered: basic.reject",
        dead_lettering.test_a_rejected_message_is_dead_lettered),
    Row(1, "... basic.nack", dead_lettering.test_a_nacked_message_is_dead_lettered),
    Row(1, "... with requeue=false only", dead_lettering.test_a_requeued_message_is_not_dead_lettered),
    Row(1, "a message that expires is dead-lettered", dead_lettering.test_an_expired_message_is_dead_lettered),
    Row(1, "a message dropped for the queue's length is dead-lettered",
        limits.test_the_oldest_messages_go_and_every_publish_is_acked),
    Row(1, "the expiry of a queue dead-letters nothing",
        queue_ttl.test_the_messages_of_an_expired_queue_are_not_dead_lettered),
    Row(1, "a dead-letter exchange is an ordinary exchange: direct",
        routing.test_without_a_dead_letter_routing_key_the_message_keeps_its_own),
    Row(1, "... fanout", routing.test_a_fanout_dead_letter_exchange_gives_a_copy_to_every_queue),
    Row(1, "... topic", routing.test_a_topic_dead_letter_exchange_routes_by_pattern),
    Row(1, "... headers", routing.test_a_headers_dead_letter_exchange_routes_by_the_messages_headers),
    Row(1, "it is declared as usual", dead_lettering.test_publishing_to_a_dead_letter_exchange_directly_makes_no_death),
    Row(1, "clients define it by arguments", dead_letter_exchange_by_argument),
    Row(1, "... servers by policies", declaration.test_the_dead_letter_exchange_can_come_from_a_policy),
    Row(1, "when both do, the argument overrules the policy",
        declaration.test_the_argument_beats_the_policy_for_the_dead_letter_exchange),
    Row(1, "a policy can be changed without deploying applications anew",
        ttl.test_the_dead_letter_exchange_in_force_at_the_time_of_death_counts),
    Row(1, "the policy's key is dead-letter-exchange, and it may be for all queues",
        dead_lettering.test_a_policy_on_all_queues_dead_letters_every_one_of_them),
    Row(1, "... and dead-letter-routing-key for the key",
        declaration.test_the_dead_letter_routing_key_can_come_from_a_policy),
    Row(1, "the argument is x-dead-letter-exchange", dead_letter_exchange_by_argument),
    Row(1, "the exchange is one of the same vhost",
        definitions.test_the_dead_letter_exchange_is_looked_up_in_the_queues_own_vhost),
    Row(1, "it need not exist when the queue is declared",
        declaration.test_the_dead_letter_exchange_need_not_exist_when_the_queue_is_declared),
    Row(1, "if it is missing when needed, messages are silently dropped",
        declaration.test_a_message_whose_dead_letter_exchange_is_missing_is_dropped_and_the_queue_works_on),
    Row(1, "x-dead-letter-routing-key sets the key", routing.test_with_a_dead_letter_routing_key_the_message_gets_that),
    Row(1, "if unset, the message's own keys are used",
        routing.test_without_a_dead_letter_routing_key_the_message_keeps_its_own),
    Row(1, "declaring needs configure access as usual",
        declaration.test_configure_is_checked_before_read_and_read_before_write),
    Row(1, "... read access to the queue",
        declaration.test_declaring_with_a_dead_letter_exchange_needs_read_access_to_the_queue),
    Row(1, "... write access to the dead-letter exchange",
        declaration.test_declaring_with_a_dead_letter_exchange_needs_write_access_to_it),
    Row(1, "permissions are verified when the queue is declared",
        declaration.test_the_permissions_are_checked_neither_for_a_policy_nor_when_a_message_dies),
    Row(1, "routed with the key of the queue: published with foo, dead-lettered with bar",
        routing.test_with_a_dead_letter_routing_key_the_message_gets_that),
    Row(1, "... or the key it was published with: foo stays foo",
        routing.test_without_a_dead_letter_routing_key_the_message_keeps_its_own),
    Row(1, "all original keys are used, those of CC and BCC too",
        routing.test_without_a_dead_letter_routing_key_cc_and_bcc_keys_are_used_too),
    Row(1, "a cycle may form, for example by the default exchange without a routing key",
        cycles.test_a_queue_that_dead_letters_expired_messages_to_itself_drops_them),
    Row(1, "messages of a cycle without any rejection are dropped",
        cycles.test_two_queues_with_a_ttl_do_not_pass_a_message_round_and_round),
    Row(1, "... and not with a rejection in it", cycles.test_a_rejection_on_the_way_breaks_the_cycle),
    Row(1, "dead letters are removed from the queue once they are published",
        dead_lettering.test_a_dead_letter_is_in_its_target_once_it_has_left_its_source),
    Row(1, "if the target cannot accept them they may be lost",
        routing.test_a_full_classic_target_that_rejects_loses_the_dead_letter),
    Row(1, "quorum queues support dead-lettering at least once",
        at_least_once.test_dead_letters_arrive_once_and_in_order),
    Row(1, "... which keeps what a target does not confirm",
        at_least_once.test_a_target_that_refuses_keeps_the_messages),
    Row(1, "the exchange name is replaced by that of the latest dead-letter exchange",
        death.test_first_death_headers_never_change_and_last_death_headers_always_do),
    Row(1, "the routing key may be replaced by the queue's",
        routing.test_with_a_dead_letter_routing_key_the_message_gets_that),
    Row(1, "then the CC header is removed (RabbitMQ since 3.13: it stays)",
        routing.test_with_a_dead_letter_routing_key_cc_and_bcc_keys_are_not_used_but_the_cc_header_stays),
    Row(1, "the BCC header is removed", routing.test_without_a_dead_letter_routing_key_cc_and_bcc_keys_are_used_too),
    Row(1, "x-death is an array of tables, one for each queue and reason",
        death.test_entries_are_distinguished_by_queue_and_reason),
    Row(1, "with queue, reason, time, exchange, routing-keys, count and original-expiration",
        death.test_an_entry_has_these_fields_of_these_types_in_this_order),
    Row(1, "time is a 64-bit timestamp", death.test_an_entry_has_these_fields_of_these_types_in_this_order),
    Row(1, "exchange is a dead-letter exchange when the message died several times",
        death.test_first_death_headers_never_change_and_last_death_headers_always_do),
    Row(1, "routing-keys has CC keys and no BCC keys", death.test_routing_keys_has_the_cc_keys_and_not_the_bcc_keys),
    Row(1, "count is how often it died in this queue for this reason",
        death.test_another_death_of_the_same_queue_and_reason_counts_up_and_moves_to_the_front),
    Row(1, "original-expiration is the message's own TTL", death.test_original_expiration_is_there_whatever_the_reason),
    Row(1, "the expiration property is removed, so that it does not expire again",
        routing.test_a_dead_letter_does_not_expire_again_by_its_own_ttl),
    Row(1, "new entries go to the front", death.test_a_death_in_another_queue_goes_in_front),
    Row(1, "a known entry is counted up and moved to the front",
        death.test_another_death_of_the_same_queue_and_reason_counts_up_and_moves_to_the_front),
    Row(1, "the reasons are rejected, expired and maxlen", death.test_the_entry_of_each_reason),
    Row(1, "... and delivery_limit, for quorum queues",
        dead_lettering.test_a_message_beyond_the_delivery_limit_is_dead_lettered),
    Row(1, "x-first-death-reason, -queue and -exchange are added at the first death",
        death.test_the_six_first_and_last_death_headers_are_strings),
    Row(1, "... and never modified", death.test_first_death_headers_never_change_and_last_death_headers_always_do),
    Row(1, "the most recent death is the first entry", death.test_a_death_in_another_queue_goes_in_front),
    Row(1, "example: queue and dead-letter queue on one exchange", one_exchange_for_both),
    # --- document 2
    Row(2, "TTL for messages and queues, by argument or policy", sixty_seconds_by_argument),
    Row(2, "what stays longer than the TTL expires and is discarded",
        ttl.test_a_message_leaves_when_the_queue_ttl_has_passed_and_not_before),
    Row(2, "... or dead-lettered when there is a dead-letter queue",
        dead_lettering.test_an_expired_message_is_dead_lettered),
    Row(2, "discarded means not delivered to consumers", expiry.test_basic_deliver_never_carries_an_expired_message),
    Row(2, "... nor to basic.get", expiry.test_basic_get_never_returns_an_expired_message),
    Row(2, "message TTL for one queue, a group of queues or one message",
        policies.test_a_policy_of_another_name_pattern_leaves_a_queue_alone),
    Row(2, "queue TTL together with auto-delete", queue_ttl.test_expires_works_together_with_auto_delete),
    Row(2, "streams do not support expiry", queue_ttl.test_a_stream_takes_no_x_expires),
    Row(2, "a queue expires only when it is not used; a consumer is use",
        queue_ttl.test_a_queue_with_a_consumer_never_expires),
    Row(2, "queue TTL and message TTL are different things", message_ttl_and_queue_ttl_are_different_things),
    Row(2, "expired messages and queues are deleted", message_ttl_and_queue_ttl_are_different_things),
    Row(2, "operator policies can enforce a TTL", ttl.test_the_lowest_of_argument_policy_and_operator_policy_counts),
    Row(2, "message-ttl by policy or argument", ttl.test_message_ttl_can_come_from_a_policy),
    Row(2, "in several queues a message dies at different times, or not at all",
        ttl.test_a_message_expires_in_each_queue_on_its_own),
    Row(2, "dead messages are neither delivered nor fetched",
        expiry.test_basic_deliver_never_carries_an_expired_message),
    Row(2, "they are removed at their TTL or shortly after",
        ttl.test_a_message_leaves_when_the_queue_ttl_has_passed_and_not_before),
    Row(2, "the value is a non-negative integer of milliseconds", ttl.test_x_message_ttl_may_be_zero_to_ten_years),
    Row(2, "it may be of four AMQP integer types", ttl.test_x_message_ttl_may_be_of_any_integer_type),
    Row(2, "a policy for all queues: set_policy TTL \".*\" '{\"message-ttl\":60000}' --apply-to queues",
        policies.test_apply_to_says_which_queues_a_policy_is_for),
    Row(2, "example: 60 seconds by argument", sixty_seconds_by_argument),
    Row(2, "a TTL policy may meet messages that are there already",
        ttl.test_a_ttl_policy_reaches_messages_that_wait_already),
    Row(2, "requeued messages keep their deadline", ttl.test_a_requeued_message_keeps_its_deadline),
    Row(2, "TTL 0 expires what cannot be delivered immediately",
        expiry.test_a_zero_ttl_message_dies_when_the_only_consumer_is_busy),
    Row(2, "immediate is not supported", expiry.test_immediate_is_not_implemented),
    Row(2, "TTL 0 returns nothing and dead-letters", expiry.test_a_zero_ttl_message_is_confirmed_and_never_returned),
    Row(2, "expiration is in milliseconds, under the same constraints, as a string",
        ttl.test_expiration_is_digits_with_an_optional_sign_and_is_delivered_in_canonical_form),
    Row(2, "the lower of both TTLs counts", ttl.test_the_lower_of_queue_ttl_and_message_ttl_counts),
    Row(2, "example: 60 seconds by property", sixty_seconds_by_property),
    Row(2, "only at the head are expired messages dropped or dead-lettered (Leveret: anywhere)",
        expiry.test_dead_letters_leave_in_the_order_of_their_deadlines),
    Row(2, "... and that rule can be had back", expiry.test_x_expiry_order_head_lets_only_the_head_expire),
    Row(2, "consumers receive no expired messages", expiry.test_basic_deliver_never_carries_an_expired_message),
    Row(2, "a message may expire on its way", a_message_already_on_its_way_is_not_called_back),
    Row(2, "consumers make the discarding faster", a_consumer_clears_what_expired_behind_the_head),
    Row(2, "to free resources use a queue TTL, purge or delete", purging_and_deleting_free_what_waits),
    Row(2, "x-expires or the policy expires say how long a queue may be unused",
        queue_ttl.test_expires_can_come_from_a_policy),
    Row(2, "unused: no consumers", queue_ttl.test_the_lease_starts_again_when_the_last_consumer_goes),
    Row(2, "... not redeclared", queue_ttl.test_a_redeclaration_renews_the_lease_of_a_classic_queue),
    Row(2, "... no basic.get", queue_ttl.test_basic_get_renews_the_lease_even_when_it_finds_nothing),
    Row(2, "an unused queue is deleted, not necessarily promptly",
        queue_ttl.test_an_unused_queue_goes_when_its_lease_is_over_and_not_before),
    Row(2, "the value must be positive", queue_ttl.test_x_expires_must_be_positive_and_at_most_ten_years),
    Row(2, "example: a policy of 30 minutes for all queues", queue_ttl.test_expires_can_come_from_a_policy),
    Row(2, "example: 30 minutes by argument", thirty_minutes_by_argument),
    # --- document 3
    Row(3, "TTL for messages and queues, by arguments or better by a policy",
        ttl.test_message_ttl_can_come_from_a_policy),
    Row(3, "for one queue, a group of queues, or message by message",
        policies.test_a_policy_of_another_name_pattern_leaves_a_queue_alone),
    Row(3, "operator policies apply too", ttl.test_the_lowest_of_argument_policy_and_operator_policy_counts),
    Row(3, "a message in the queue longer than the TTL is dead",
        ttl.test_a_message_leaves_when_the_queue_ttl_has_passed_and_not_before),
    Row(3, "it dies in each queue at its own time, without effect on the others",
        ttl.test_a_message_expires_in_each_queue_on_its_own),
    Row(3, "dead messages are not delivered", expiry.test_basic_deliver_never_carries_an_expired_message),
    Row(3, "... nor fetched", expiry.test_basic_get_never_returns_an_expired_message),
    Row(3, "they are removed at or shortly after their TTL",
        ttl.test_a_message_leaves_when_the_queue_ttl_has_passed_and_not_before),
    Row(3, "a non-negative integer, in milliseconds, of four types", ttl.test_x_message_ttl_may_be_of_any_integer_type),
    Row(3, "1000: one second, or until delivered", ttl.test_an_unacked_message_outlives_its_deadline_and_can_be_acked),
    Row(3, "a policy of 60 seconds for all queues", policies.test_apply_to_says_which_queues_a_policy_is_for),
    Row(3, "an argument of 60 seconds", sixty_seconds_by_argument),
    Row(3, "a TTL policy on a queue with messages", ttl.test_messages_lose_their_deadline_when_the_ttl_policy_goes),
    Row(3, "the original deadline survives a requeue", ttl.test_a_requeued_message_keeps_its_deadline),
    Row(3, "... and the closing of a channel", ttl.test_a_message_given_back_after_its_deadline_dies_as_expired),
    Row(3, "TTL 0 expires on arrival what cannot be delivered at once",
        expiry.test_a_zero_ttl_message_is_delivered_to_a_consumer_that_can_take_it),
    Row(3, "immediate publishing is not supported", expiry.test_immediate_is_not_implemented),
    Row(3, "TTL 0: no basic.return", expiry.test_a_zero_ttl_message_is_confirmed_and_never_returned),
    Row(3, "TTL 0: dead-lettered when an exchange is set",
        expiry.test_zero_ttl_message_without_a_consumer_dies_at_once),
    Row(3, "expiration for one message, a string, same constraints", ttl.test_any_other_expiration_closes_the_channel),
    Row(3, "the lower of both counts", ttl.test_the_lower_of_queue_ttl_and_message_ttl_counts),
    Row(3, "a message of 60 seconds", sixty_seconds_by_property),
    Row(3, "expired messages go when they reach the head (Leveret: at once)",
        expiry.test_a_message_leaves_in_time_while_the_only_consumer_is_busy),
    Row(3, "consumers do not get them", expiry.test_basic_deliver_never_carries_an_expired_message),
    Row(3, "the race between expiry and delivery", a_message_already_on_its_way_is_not_called_back),
    Row(3, "they stand behind unexpired ones and are counted (Leveret: not)",
        expiry.test_a_message_behind_one_that_lives_longer_leaves_in_time),
    Row(3, "consumers make it faster", a_consumer_clears_what_expired_behind_the_head),
    Row(3, "use a queue TTL, purge or delete to free resources", a_queue_ttl_never_leaves_expired_messages_waiting),
    Row(3, "queues expire when unused, for example without consumers",
        queue_ttl.test_a_queue_with_a_consumer_never_expires),
    Row(3, "together with auto-delete", queue_ttl.test_expires_works_together_with_auto_delete),
    Row(3, "by x-expires or the policy expires", queue_ttl.test_expires_can_come_from_a_policy),
    Row(3, "a redeclaration renews the lease",
        queue_ttl.test_a_passive_declaration_renews_the_lease_of_a_classic_queue),
    Row(3, "basic.get renews it", queue_ttl.test_basic_get_renews_the_lease_even_when_it_finds_nothing),
    Row(3, "reply queues that are never drained", queue_ttl.test_publishing_binding_and_purging_do_not_renew_the_lease),
    Row(3, "an unused queue is deleted", queue_ttl.test_an_unused_queue_goes_when_its_lease_is_over_and_not_before),
    Row(3, "how promptly is not guaranteed", queue_ttl.test_an_unused_queue_goes_when_its_lease_is_over_and_not_before),
    Row(3, "leases of durable queues restart with the server", NEEDS_A_RESTART),
    Row(3, "the value is positive; 1000 is one second unused",
        queue_ttl.test_x_expires_must_be_positive_and_at_most_ten_years),
    Row(3, "30 minutes by policy", queue_ttl.test_expires_can_come_from_a_policy),
    Row(3, "30 minutes by argument", thirty_minutes_by_argument),
    # --- document 4
    Row(4, "TTL for messages and queues", message_ttl_and_queue_ttl_are_different_things),
    Row(4, "x-message-ttl says how long a message can live before it is discarded", sixty_seconds_by_argument),
    Row(4, "... or the message-ttl policy", ttl.test_message_ttl_can_come_from_a_policy),
    Row(4, "longer than the TTL is dead", ttl.test_a_message_leaves_when_the_queue_ttl_has_passed_and_not_before),
    Row(4, "in several queues it dies at different times or not at all, independently",
        ttl.test_a_message_expires_in_each_queue_on_its_own),
    Row(4, "dead messages are in no basic.get-ok", expiry.test_basic_get_never_returns_an_expired_message),
    Row(4, "... and in no basic.deliver", expiry.test_basic_deliver_never_carries_an_expired_message),
    Row(4, "reaped at or shortly after expiry", ttl.test_a_message_leaves_when_the_queue_ttl_has_passed_and_not_before),
    Row(4, "(struck out) a 32-bit integer: the bound is gone", a_32_bit_bound_no_longer_exists),
    Row(4, "a non-negative integer", ttl.test_x_message_ttl_out_of_range_is_refused),
    Row(4, "in milliseconds: 1000 is a second, or until delivered",
        ttl.test_an_unacked_message_outlives_its_deadline_and_can_be_acked),
    Row(4, "of type short-short-int, short-int, long-int or long-long-int",
        ttl.test_x_message_ttl_may_be_of_any_integer_type),
    Row(4, "anything that is no integer is refused", ttl.test_x_message_ttl_of_any_other_type_is_refused),
    Row(4, "example: 60 seconds by argument", sixty_seconds_by_argument),
    Row(4, "a policy with the key message-ttl, for all queues",
        policies.test_apply_to_says_which_queues_a_policy_is_for),
    Row(4, "the original expiry time survives requeueing", ttl.test_a_requeued_message_keeps_its_deadline),
    Row(4, "... and channel closure", ttl.test_a_message_given_back_after_its_deadline_dies_as_expired),
    Row(4, "TTL 0: expired on reaching the queue", expiry.test_zero_ttl_message_without_a_consumer_dies_at_once),
    Row(4, "... unless delivered immediately",
        expiry.test_a_zero_ttl_message_is_delivered_to_a_consumer_that_can_take_it),
    Row(4, "immediate is not supported", expiry.test_immediate_is_not_implemented),
    Row(4, "no basic.returns are issued", expiry.test_a_zero_ttl_message_is_confirmed_and_never_returned),
    Row(4, "dead-lettered if an exchange is set", expiry.test_a_zero_ttl_message_dies_when_the_only_consumer_is_busy),
    Row(4, "the expiration field of basic.publish sets a message's TTL",
        ttl.test_a_message_leaves_when_its_own_ttl_has_passed_and_not_before),
    Row(4, "only the string representation of a number", ttl.test_any_other_expiration_closes_the_channel),
    Row(4, "the lower value is chosen", ttl.test_the_lower_of_queue_ttl_and_message_ttl_counts),
    Row(4, "example: 60 seconds by property", sixty_seconds_by_property),
    Row(4, "consumers never see expired messages", expiry.test_basic_deliver_never_carries_an_expired_message),
    Row(4, "only at the head are they discarded or dead-lettered (Leveret: in time)",
        expiry.test_dead_letters_leave_in_the_order_of_their_deadlines),
    Row(4, "with a queue TTL that is no problem: the expired ones are at the head",
        a_queue_ttl_never_leaves_expired_messages_waiting),
    Row(4, "with message TTLs they queue up behind others (Leveret: not)",
        expiry.test_a_message_behind_one_that_lives_longer_leaves_in_time),
    Row(4, "... hold resources (Leveret: not)",
        expiry.test_an_expired_message_behind_the_head_does_not_use_up_the_length_limit),
    Row(4, "... and count in statistics (Leveret: not)",
        expiry.test_a_message_leaves_in_time_while_the_only_consumer_is_busy),
    Row(4, "x-expires or the policy expires: how long a queue can be unused",
        queue_ttl.test_expires_can_come_from_a_policy),
    Row(4, "unused: no consumers", queue_ttl.test_a_queue_with_a_consumer_never_expires),
    Row(4, "... not redeclared", queue_ttl.test_a_redeclaration_renews_the_lease_of_a_classic_queue),
    Row(4, "... basic.get not invoked", queue_ttl.test_basic_get_renews_the_lease_even_when_it_finds_nothing),
    Row(4, "for reply queues that may never be drained",
        queue_ttl.test_publishing_binding_and_purging_do_not_renew_the_lease),
    Row(4, "the queue will be deleted if unused for the period",
        queue_ttl.test_an_unused_queue_goes_when_its_lease_is_over_and_not_before),
    Row(4, "no guarantee how promptly", queue_ttl.test_an_unused_queue_goes_when_its_lease_is_over_and_not_before),
    Row(4, "leases of durable queues restart when the server restarts", NEEDS_A_RESTART),
    Row(4, "subject to the constraints of x-message-ttl", queue_ttl.test_x_expires_of_any_other_type_is_refused),
    Row(4, "... but positive", queue_ttl.test_x_expires_must_be_positive_and_at_most_ten_years),
    Row(4, "example: 30 minutes by argument", thirty_minutes_by_argument),
    Row(4, "the same by policy", queue_ttl.test_expires_can_come_from_a_policy),
]


def row_id(row):
    return f"{row.document}: {row.sentence}"


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_documents_statements_hold(row, request):
    if row.proof is NEEDS_A_RESTART:
        pytest.skip("needs a broker that is stopped and started")
    if row.proof.__module__ == __name__:
        row.proof(request.getfixturevalue("ch"))
    else:
        assert row.proof.__name__.startswith("test_"), "proved by a test of its own, in another file"
