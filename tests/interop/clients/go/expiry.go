package main

import (
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const soon = 10 * time.Millisecond

func queueTTL() {
	connection, channel := open()
	defer connection.Close()
	queue := exclusive(channel, amqp.Table{"x-message-ttl": 1000})
	publisher := confirming(channel)
	for _, text := range []string{"one", "two", "three"} {
		publisher.publish("", queue, text, amqp.Publishing{})
	}
	expectEqual(ready(channel, queue), 3, "messages at first")
	eventually("the messages expire", soon, func() bool { return ready(channel, queue) == 0 })

	unused := must(channel.QueueDeclare(unique(), false, false, false, false, amqp.Table{"x-expires": 300})).Name
	// To ask is to use the queue: it must be left alone for longer than it lives.
	eventually("the queue expires", 500*time.Millisecond, func() bool { return !exists(connection, unused) })
}

// exists asks in a channel of its own, which "no" closes.
func exists(connection *amqp.Connection, queue string) bool {
	channel := must(connection.Channel())
	defer channel.Close()
	_, err := channel.QueueDeclarePassive(queue, false, false, false, false, nil)
	var told *amqp.Error
	if errors.As(err, &told) && told.Code == amqp.NotFound {
		return false
	}
	check(err)
	return true
}

func messageTTL() {
	connection, channel := open()
	defer connection.Close()
	queue, publisher := exclusive(channel, nil), confirming(channel)
	publisher.publish("", queue, "short", amqp.Publishing{Expiration: "1000"})
	publisher.publish("", queue, "long", amqp.Publishing{Expiration: "60000"})
	expectEqual(ready(channel, queue), 2, "messages at first")
	eventually("the first message expires", soon, func() bool { return ready(channel, queue) == 1 })
	second := get(channel, queue, true)
	expectEqual(string(second.Body), "long", "what is left")
	expectEqual(second.Expiration, "60000", "expiration")

	publisher.publish("", queue, "never", amqp.Publishing{Expiration: "0"})
	expectEqual(ready(channel, queue), 0, "messages that expire at once")
	expectEmpty(channel, queue)
}
