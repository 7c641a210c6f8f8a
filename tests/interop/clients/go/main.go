// amqp091-go, through every scenario; ../../README.md says what each does.
package main

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const within = 60 * time.Second

var version string // of the client, which keeps its own to itself: `prepare` asks the package

var stdin = bufio.NewReader(os.Stdin)

var scenarios = map[string]func(){
	"connect":      connect,
	"tls":          overTLS,
	"confirms":     confirms,
	"prefetch":     prefetch,
	"queue-ttl":    queueTTL,
	"message-ttl":  messageTTL,
	"dead-letter":  deadLetter,
	"priorities":   priorities,
	"transactions": transactions,
	"rpc":          rpc,
	"large":        large,
	"cancel":       cancel,
	"restart":      restart,
	"errors":       brokerErrors,
}

func main() {
	fmt.Println("version", version)
	status := 0
	for _, name := range os.Args[1:] {
		if !passes(name) {
			status = 1
		}
	}
	os.Exit(status)
}

// passes runs a scenario, which panics when something is not as it should be.
func passes(name string) (passed bool) {
	defer func() {
		if fault := recover(); fault != nil {
			debug.PrintStack()
			fmt.Printf("failed %s: %s\n", name, strings.Join(strings.Fields(fmt.Sprint(fault)), " "))
		}
	}()
	scenarios[name]()
	fmt.Println("ok", name)
	return true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func expect(holds bool, format string, values ...any) {
	if !holds {
		panic(fmt.Sprintf(format, values...))
	}
}

func expectEqual(got, wanted any, what string) {
	expect(reflect.DeepEqual(got, wanted), "%s: %#v, not %#v", what, got, wanted)
}

// next is what a channel has next, or a failure when nothing comes.
func next[T any](events <-chan T, what string) T {
	select {
	case event, open := <-events:
		expect(open, "%s: the channel was closed", what)
		return event
	case <-time.After(within):
		panic(fmt.Sprintf("not within %v: %s", within, what))
	}
}

// eventually asks again and again until it holds.
func eventually(what string, pause time.Duration, holds func() bool) {
	for deadline := time.Now().Add(within); !holds(); time.Sleep(pause) {
		expect(time.Now().Before(deadline), "not within %v: %s", within, what)
	}
}

// unique is a name that nobody else uses.
func unique() string {
	random := make([]byte, 6)
	must(rand.Read(random))
	return fmt.Sprintf("interop-%x", random)
}

// restartBroker has the broker killed and started again.
func restartBroker() {
	fmt.Println("restart")
	expectEqual(must(stdin.ReadString('\n')), "restarted\n", "the answer to restart")
}

func url() string {
	return fmt.Sprintf("amqp://guest:guest@%s:%s/", os.Getenv("AMQP_HOST"), os.Getenv("AMQP_PORT"))
}

// open is a connection and its first channel; closing the connection closes both.
func open() (*amqp.Connection, *amqp.Channel) {
	connection := must(amqp.Dial(url()))
	return connection, must(connection.Channel())
}

// exclusive declares a queue that goes with its connection, named by the broker, and tells the name.
func exclusive(channel *amqp.Channel, arguments amqp.Table) string {
	return must(channel.QueueDeclare("", false, false, true, false, arguments)).Name
}

// ready is how many messages wait in a queue.
func ready(channel *amqp.Channel, queue string) int {
	return must(channel.QueueInspect(queue)).Messages
}

// publish sends a text to an exchange; `with` has its properties.
func publish(channel *amqp.Channel, exchange, key, text string, with amqp.Publishing) {
	with.Body = []byte(text)
	check(channel.Publish(exchange, key, false, false, with))
}

// get takes the next message out of a queue; there must be one.
func get(channel *amqp.Channel, queue string, autoAck bool) amqp.Delivery {
	message, found, err := channel.Get(queue, autoAck)
	check(err)
	expect(found, "%s is empty", queue)
	return message
}

func expectEmpty(channel *amqp.Channel, queue string) {
	message, found, err := channel.Get(queue, true)
	check(err)
	expect(!found, "%s is not empty: %q", queue, message.Body)
}

// consume starts a consumer that acknowledges, or not, what it is given.
func consume(channel *amqp.Channel, queue string, autoAck bool) <-chan amqp.Delivery {
	return must(channel.Consume(queue, "", autoAck, false, false, false, nil))
}
