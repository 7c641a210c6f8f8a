// What the scenarios do with the client again and again.

using System;
using System.Collections;
using System.Collections.Concurrent;
using System.Text;
using RabbitMQ.Client;
using RabbitMQ.Client.Events;
using static Checks;
using static Client;

static class Client
{
    /// A name that nobody else uses.
    public static string Unique() => $"interop-{Guid.NewGuid():N}";

    /// Has the broker killed and started again.
    public static void RestartBroker()
    {
        Console.WriteLine("restart");
        ExpectEqual(Console.ReadLine(), "restarted", "the answer to restart");
    }

    public static ConnectionFactory Factory() => new ConnectionFactory
    {
        Protocol = Protocols.AMQP_0_9,
        HostName = Environment.GetEnvironmentVariable("AMQP_HOST"),
        Port = int.Parse(Environment.GetEnvironmentVariable("AMQP_PORT")),
    };

    public static IConnection Connected() => Factory().CreateConnection();

    public static byte[] Bytes(string text) => Encoding.UTF8.GetBytes(text);

    /// The text of a body, or of a string in a table, which the client leaves as octets.
    public static string Text(object octets) => Encoding.UTF8.GetString((byte[])octets);

    /// Declares a queue that goes with its connection.
    public static string Exclusive(IModel channel, IDictionary arguments = null)
    {
        return channel.QueueDeclare("", false, false, true, false, false, arguments);
    }

    public static void Passive(IModel channel, string queue)
    {
        channel.QueueDeclare(queue, true, false, false, false, false, null);
    }

    public static void Publish(IModel channel, string exchange, string key, string body,
                               Action<IBasicProperties> set = null)
    {
        var properties = channel.CreateBasicProperties();
        set?.Invoke(properties);
        channel.BasicPublish(exchange, key, properties, Bytes(body));
    }

    /// The next message of a queue, which must have one.
    public static BasicGetResult Get(IModel channel, string queue, bool noAck = true)
    {
        return channel.BasicGet(queue, noAck) ?? throw new Exception($"{queue} is empty");
    }

    public static void ExpectNext(IModel channel, string queue, string body)
    {
        ExpectEqual(Text(Get(channel, queue).Body), body, "the next message");
    }

    public static void ExpectEmpty(IModel channel, string queue)
    {
        Expect(channel.BasicGet(queue, true) == null, $"{queue} is not empty");
    }

    /// How many messages wait in a queue: one is got, which tells how many are behind it, and given back.
    public static uint Ready(IModel channel, string queue)
    {
        var first = channel.BasicGet(queue, false);
        if (first == null)
            return 0;
        channel.BasicReject(first.DeliveryTag, true);
        return first.MessageCount + 1;
    }
}

/// What comes to a consumer, handed over by the connection's thread.
class Inbox
{
    readonly BlockingCollection<BasicDeliverEventArgs> deliveries = new BlockingCollection<BasicDeliverEventArgs>();

    public Inbox(IModel channel, string queue, bool noAck = true)
    {
        var consumer = new EventingBasicConsumer();
        consumer.Received += (_, delivery) => deliveries.Add(delivery);
        channel.BasicConsume(queue, noAck, null, consumer);
    }

    public BasicDeliverEventArgs Next(string what)
    {
        Expect(deliveries.TryTake(out var delivery, Within), $"not within {Within}: {what}");
        return delivery;
    }

    public BasicDeliverEventArgs NextIs(string body)
    {
        var delivery = Next(body);
        ExpectEqual(Text(delivery.Body), body, "delivered");
        return delivery;
    }
}
