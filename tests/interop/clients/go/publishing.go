package main

import (
	"bytes"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

const manyMessages = 1000

// publisher is a channel whose messages are confirmed.
//
// PublishWithDeferredConfirm would be shorter, but this version of the client takes note of the confirmation after it
// has sent the message: the confirm of a broker that is faster is lost, and Wait waits forever.
type publisher struct {
	*amqp.Channel
	confirmations <-chan amqp.Confirmation
}

func confirming(channel *amqp.Channel) publisher {
	check(channel.Confirm(false))
	return publisher{channel, channel.NotifyPublish(make(chan amqp.Confirmation, manyMessages))}
}

// confirmed tells whether the message that is next in turn was accepted.
func (p publisher) confirmed() bool {
	return next(p.confirmations, "a confirm").Ack
}

// publish sends a message and waits until it is confirmed: then it is where others see it.
func (p publisher) publish(exchange, key, text string, with amqp.Publishing) {
	publish(p.Channel, exchange, key, text, with)
	expect(p.confirmed(), "refused: %s", text)
}

var persistent = amqp.Publishing{DeliveryMode: amqp.Persistent}

func confirms() {
	connection, channel := open()
	defer connection.Close()
	publisher := confirming(channel)

	queue := must(channel.QueueDeclare(unique(), true, false, false, false, nil)).Name
	for i := 0; i < manyMessages; i++ {
		publish(channel, "", queue, fmt.Sprint(i), persistent)
	}
	for i := 0; i < manyMessages; i++ {
		expect(publisher.confirmed(), "message %d was refused", i)
	}
	expectEqual(ready(channel, queue), manyMessages, "messages in the queue")
	expectEqual(must(channel.QueueDelete(queue, false, false, false)), manyMessages, "deleted with the queue")

	returns := channel.NotifyReturn(make(chan amqp.Return, 1))
	check(channel.Publish("", unique(), true, false, amqp.Publishing{Body: []byte("nobody")}))
	expect(publisher.confirmed(), "a returned message was refused")
	returned := next(returns, "the message comes back")
	expectEqual(returned.ReplyCode, uint16(amqp.NoRoute), "reply code")
	expectEqual(returned.ReplyText, "NO_ROUTE", "reply text")
	expectEqual(string(returned.Body), "nobody", "body")

	full := exclusive(channel, amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	publisher.publish("", full, "first", amqp.Publishing{})
	publish(channel, "", full, "second", amqp.Publishing{})
	expect(!publisher.confirmed(), "the second message was not refused")
	expectEqual(string(get(channel, full, true).Body), "first", "what the full queue has")
}

func priorities() {
	connection, channel := open()
	defer connection.Close()
	queue := exclusive(channel, amqp.Table{"x-max-priority": 5})
	publish(channel, "", queue, "1", amqp.Publishing{Priority: 1})
	publish(channel, "", queue, "5", amqp.Publishing{Priority: 5})
	publish(channel, "", queue, "3", amqp.Publishing{Priority: 3})
	publish(channel, "", queue, "without", amqp.Publishing{})
	for _, wanted := range []string{"5", "3", "1", "without"} {
		expectEqual(string(get(channel, queue, true).Body), wanted, "priority")
	}
}

func transactions() {
	connection, channel := open()
	defer connection.Close()
	check(channel.Tx())
	queue := exclusive(channel, nil)
	publishTwo := func() {
		publish(channel, "", queue, "one", amqp.Publishing{})
		publish(channel, "", queue, "two", amqp.Publishing{})
	}
	publishTwo()
	check(channel.TxRollback())
	expectEqual(ready(channel, queue), 0, "messages after the rollback")
	publishTwo()
	expectEqual(ready(channel, queue), 0, "messages before the commit")
	check(channel.TxCommit())
	expectEqual(ready(channel, queue), 2, "messages after the commit")

	check(get(channel, queue, false).Ack(false))
	check(channel.TxCommit())
	check(channel.Close()) // what is not acknowledged comes back
	channel = must(connection.Channel())
	expectEqual(string(get(channel, queue, true).Body), "two", "what is left")
	expectEmpty(channel, queue)
}

func large() {
	connection, channel := open()
	defer connection.Close()
	body := make([]byte, 20_000_000)
	for i := range body {
		body[i] = byte(i % 251)
	}
	publisher, queue := confirming(channel), exclusive(channel, nil)
	check(channel.Publish("", queue, false, false, amqp.Publishing{Body: body}))
	expect(publisher.confirmed(), "refused")
	expect(bytes.Equal(get(channel, queue, true).Body, body), "the message is another one")
}
