package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func connect() {
	roundTrip(must(amqp.Dial(url())))
}

func overTLS() {
	address := fmt.Sprintf("amqps://guest:guest@%s:%s/", os.Getenv("AMQP_HOST"), os.Getenv("AMQPS_PORT"))
	authority := x509.NewCertPool()
	expect(authority.AppendCertsFromPEM(must(os.ReadFile(os.Getenv("CA_FILE")))), "no certificate in CA_FILE")
	roundTrip(must(amqp.DialTLS(address, &tls.Config{RootCAs: authority})))

	_, err := amqp.DialTLS(address, &tls.Config{RootCAs: x509.NewCertPool()})
	expect(errors.As(err, &x509.UnknownAuthorityError{}), "without the authority: %v", err)
}

// roundTrip sends a message with properties to itself and closes the connection.
func roundTrip(connection *amqp.Connection) {
	defer connection.Close()
	channel := must(connection.Channel())
	queue := exclusive(channel, nil)
	expect(strings.HasPrefix(queue, "amq.gen-"), "named by the broker: %s", queue)

	sent := amqp.Publishing{
		Headers: amqp.Table{
			"string":    "grün",
			"integer":   int32(-42),
			"long":      int64(1) << 40,
			"boolean":   true,
			"timestamp": time.Unix(1_700_000_000, 0),
			"table":     amqp.Table{"nested": amqp.Table{"deep": "yes"}},
			"list":      []any{"one", int32(2), false},
		},
		ContentType:   "text/plain",
		DeliveryMode:  amqp.Persistent,
		CorrelationId: "correlation",
		MessageId:     "message",
		Type:          "greeting",
		Body:          []byte("hello"),
	}
	check(channel.Publish("", queue, false, false, sent))
	got := get(channel, queue, true)
	expectEqual(amqp.Publishing{
		Headers:       got.Headers,
		ContentType:   got.ContentType,
		DeliveryMode:  got.DeliveryMode,
		CorrelationId: got.CorrelationId,
		MessageId:     got.MessageId,
		Type:          got.Type,
		Body:          got.Body,
	}, sent, "the message")
	expectEmpty(channel, queue)
	check(channel.Close())
	check(connection.Close())
}

// The client does not connect again by itself: applications wait for NotifyClose and dial.
func restart() {
	name := unique()
	connection, channel := open()
	check(channel.ExchangeDeclare(name, amqp.ExchangeDirect, true, false, false, false, nil))
	must(channel.QueueDeclare(name, true, false, false, false, nil))
	check(channel.QueueBind(name, "work", name, false, nil))
	confirming(channel).publish(name, "work", "before", persistent)
	closed := connection.NotifyClose(make(chan *amqp.Error, 1))
	restartBroker()
	next(closed, "the connection was lost")

	connection, channel = open()
	defer connection.Close()
	deliveries := consume(channel, name, true)
	expectEqual(string(next(deliveries, "the message of before").Body), "before", "delivered")
	confirming(channel).publish(name, "work", "after", persistent)
	expectEqual(string(next(deliveries, "the message of after").Body), "after", "delivered")
	must(channel.QueueDelete(name, false, false, false))
	check(channel.ExchangeDelete(name, false, false))
}

func brokerErrors() {
	connection, _ := open()
	defer connection.Close()
	other, theirs := open()
	defer other.Close()
	queue, locked, missing := unique(), exclusive(theirs, nil), unique()

	expectError(inChannel(connection, func(channel *amqp.Channel) error {
		_, err := channel.QueueDeclarePassive(missing, false, false, false, false, nil)
		return err
	}), amqp.NotFound, fmt.Sprintf("NOT_FOUND - no queue '%s' in vhost '/'", missing))

	expectError(inChannel(connection, func(channel *amqp.Channel) error {
		must(channel.QueueDeclare(queue, false, false, true, false, nil))
		_, err := channel.QueueDeclare(queue, false, false, true, false, amqp.Table{"x-message-ttl": 1000})
		return err
	}), amqp.PreconditionFailed, fmt.Sprintf(
		"PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue '%s' in vhost '/': ", queue))

	expectError(inChannel(connection, func(channel *amqp.Channel) error {
		closed := channel.NotifyClose(make(chan *amqp.Error, 1))
		publish(channel, "", queue, "never", amqp.Publishing{Expiration: "abc"})
		return next(closed, "the channel is closed")
	}), amqp.PreconditionFailed, "PRECONDITION_FAILED - invalid expiration 'abc': ")

	expectError(inChannel(connection, func(channel *amqp.Channel) error {
		_, err := channel.QueueDeclarePassive(locked, false, false, false, false, nil)
		return err
	}), amqp.ResourceLocked, fmt.Sprintf(
		"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '%s' in vhost '/'. ", locked))
	expectEqual(ready(must(connection.Channel()), queue), 0, "on the same connection")

	// While a connection is opened, the client tells its own errors instead of the broker's code and text.
	_, err := amqp.Dial(strings.Replace(url(), "guest:guest", "guest:wrong", 1))
	expectEqual(err, amqp.ErrCredentials, "a wrong password")
	_, err = amqp.Dial(url() + "nope")
	expectEqual(err, amqp.ErrVhost, "no such vhost")
}

// inChannel runs what closes a channel, in one of its own.
func inChannel(connection *amqp.Connection, provoke func(*amqp.Channel) error) error {
	channel := must(connection.Channel())
	err := provoke(channel)
	expect(channel.IsClosed(), "the channel is still open: %v", err)
	return err
}

func expectError(err error, code int, reason string) {
	var told *amqp.Error
	expect(errors.As(err, &told), "not an error of the broker: %v", err)
	expect(told.Server, "an error of the client's own: %v", err)
	expect(told.Code == code && strings.HasPrefix(told.Reason, reason), "not %d %s: %v", code, reason, err)
}
