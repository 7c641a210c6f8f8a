package main

import (
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

func prefetch() {
	const messages, unacknowledged = 100, 10
	connection, channel := open()
	defer connection.Close()
	queue, publisher := exclusive(channel, nil), confirming(channel)
	for i := 0; i < messages; i++ {
		publisher.publish("", queue, fmt.Sprint(i), amqp.Publishing{})
	}
	check(channel.Qos(unacknowledged, 0, false))
	deliveries := consume(channel, queue, false)
	got := 0
	nextTen := func() (ten []amqp.Delivery) {
		for len(ten) < unacknowledged {
			delivery := next(deliveries, fmt.Sprintf("message %d", got))
			expectEqual(string(delivery.Body), fmt.Sprint(got), "order")
			ten, got = append(ten, delivery), got+1
		}
		return ten
	}

	first := nextTen()
	expectEqual(ready(channel, queue), messages-unacknowledged, "messages that nobody got yet")
	for _, delivery := range first {
		check(delivery.Ack(false))
	}
	for got < messages {
		ten := nextTen()
		check(ten[4].Ack(true))
		check(ten[9].Ack(true))
	}

	publish(channel, "", queue, "again", amqp.Publishing{})
	publish(channel, "", queue, "rejected", amqp.Publishing{})
	again, rejected := next(deliveries, "again"), next(deliveries, "rejected")
	expect(!again.Redelivered, "redelivered the first time")
	check(again.Nack(false, true))
	again = next(deliveries, "the message that was sent back")
	expectEqual(string(again.Body), "again", "sent back")
	expect(again.Redelivered, "not redelivered the second time")
	check(again.Ack(false))
	check(rejected.Reject(false))
	check(channel.Close()) // what is not acknowledged comes back
	expectEmpty(must(connection.Channel()), queue)
}

func rpc() {
	const requests = 100
	server, theirs := open()
	defer server.Close()
	queue := exclusive(theirs, nil)
	go func(calls <-chan amqp.Delivery) {
		for call := range calls {
			answer := amqp.Publishing{CorrelationId: call.CorrelationId}
			publish(theirs, "", call.ReplyTo, "answer to "+string(call.Body), answer)
		}
	}(consume(theirs, queue, true))

	client, channel := open()
	defer client.Close()
	answers := consume(channel, "amq.rabbitmq.reply-to", true)
	missing := map[string]string{}
	for i := 0; i < requests; i++ {
		id, question := fmt.Sprint("id-", i), fmt.Sprint("question ", i)
		missing[id] = "answer to " + question
		publish(channel, "", queue, question, amqp.Publishing{CorrelationId: id, ReplyTo: "amq.rabbitmq.reply-to"})
	}
	for len(missing) > 0 {
		answer := next(answers, "an answer")
		expectEqual(string(answer.Body), missing[answer.CorrelationId], answer.CorrelationId)
		delete(missing, answer.CorrelationId)
	}
}

func cancel() {
	connection, channel := open()
	defer connection.Close()
	queue := exclusive(channel, nil)
	cancelled := channel.NotifyCancel(make(chan string, 1))
	deliveries := must(channel.Consume(queue, "the-consumer", true, false, false, false, nil))
	must(must(connection.Channel()).QueueDelete(queue, false, false, false))
	expectEqual(next(cancelled, "the consumer is cancelled"), "the-consumer", "consumer tag")
	_, open := <-deliveries
	expect(!open, "a delivery after the cancellation")
	expect(!channel.IsClosed(), "the channel is closed too")
}
