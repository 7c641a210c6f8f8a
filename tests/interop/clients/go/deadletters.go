package main

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func deadLetter() {
	connection, channel := open()
	defer connection.Close()
	exchange := unique()
	check(channel.ExchangeDeclare(exchange, amqp.ExchangeDirect, false, true, false, false, nil))
	deadQueue := exclusive(channel, nil)
	check(channel.QueueBind(deadQueue, "dead", exchange, false, nil))
	arguments := amqp.Table{"x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": "dead"}
	queue := exclusive(channel, arguments)
	check(channel.QueueBind(queue, "work", exchange, false, nil))
	dead := consume(channel, deadQueue, true)

	publish(channel, exchange, "work", "too late", amqp.Publishing{Expiration: "100"})
	message := next(dead, "the expired message")
	expectDeath(message, "too late", "expired", queue, exchange, "work", amqp.Table{"original-expiration": "100"})
	expectEqual(message.Expiration, "", "expiration of the expired message")

	publish(channel, exchange, "work", "unwanted", amqp.Publishing{})
	check(get(channel, queue, false).Reject(false))
	expectDeath(next(dead, "the rejected message"), "unwanted", "rejected", queue, exchange, "work", nil)

	arguments["x-max-length"] = 1
	small := exclusive(channel, arguments)
	check(channel.QueueBind(small, "small", exchange, false, nil))
	publish(channel, exchange, "small", "pushed out", amqp.Publishing{})
	publish(channel, exchange, "small", "stays", amqp.Publishing{})
	expectDeath(next(dead, "the message that was pushed out"), "pushed out", "maxlen", small, exchange, "small", nil)

	retry(channel)
}

// expectDeath checks what the broker writes on a message that died once; `more` has the rest of its `x-death`.
func expectDeath(message amqp.Delivery, text, reason, queue, exchange, key string, more amqp.Table) {
	expectEqual(string(message.Body), text, "body")
	deaths := deaths(message)
	expectEqual(len(deaths), 1, "length of x-death")
	died := deaths[0]["time"].(time.Time)
	expect(time.Since(died).Abs() < time.Minute, "time of the death: %v", died)
	wanted := amqp.Table{
		"count":        int64(1),
		"reason":       reason,
		"queue":        queue,
		"exchange":     exchange,
		"routing-keys": []any{key},
		"time":         died,
	}
	for name, value := range more {
		wanted[name] = value
	}
	expectEqual(deaths[0], wanted, "x-death")
	expectEqual(message.Headers["x-first-death-reason"], reason, "x-first-death-reason")
	expectEqual(message.Headers["x-first-death-queue"], queue, "x-first-death-queue")
	expectEqual(message.Headers["x-first-death-exchange"], exchange, "x-first-death-exchange")
}

// deaths is `x-death`, the last one first.
func deaths(message amqp.Delivery) (tables []amqp.Table) {
	for _, entry := range message.Headers["x-death"].([]any) {
		tables = append(tables, entry.(amqp.Table))
	}
	return tables
}

// retry rejects a message twice into a queue from which it comes back.
func retry(channel *amqp.Channel) {
	work, wait := unique(), unique()
	must(channel.QueueDeclare(work, false, false, true, false, amqp.Table{
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": wait}))
	must(channel.QueueDeclare(wait, false, false, true, false, amqp.Table{
		"x-message-ttl": 100, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": work}))
	deliveries := consume(channel, work, false)
	publish(channel, "", work, "try", amqp.Publishing{})
	check(next(deliveries, "the first delivery").Reject(false))
	check(next(deliveries, "the second delivery").Reject(false))

	deaths := deaths(next(deliveries, "the third delivery"))
	expectEqual(len(deaths), 2, "length of x-death")
	for i, wanted := range []struct{ reason, queue string }{{"expired", wait}, {"rejected", work}} {
		expectEqual(deaths[i]["reason"], wanted.reason, "reason")
		expectEqual(deaths[i]["queue"], wanted.queue, "queue")
		expectEqual(deaths[i]["count"], int64(2), "count")
	}
}
