// Scenarios about connections.

using System;
using System.Collections;
using System.IO;
using System.Linq;
using System.Security.Authentication;
using System.Threading;
using Mono.Security.X509;
using RabbitMQ.Client;
using static Checks;
using static Client;

static class Connections
{
    public static void Connect() => RoundTrip(Connected());

    public static void Tls()
    {
        var trusted = X509StoreManager.NewCurrentUser.TrustedRoot;
        var authority = new X509Certificate(FromPem(File.ReadAllText(Environment.GetEnvironmentVariable("CA_FILE"))));
        ErrorOf<AuthenticationException>(() => ConnectedByTls());
        trusted.Import(authority);
        try
        {
            RoundTrip(ConnectedByTls());
        }
        finally
        {
            trusted.Remove(authority);
        }
    }

    // The factory of this version forgets its own Ssl when it connects, but an endpoint can be given by hand.
    static IConnection ConnectedByTls()
    {
        var factory = Factory();
        var port = int.Parse(Environment.GetEnvironmentVariable("AMQPS_PORT"));
        var tls = new SslOption(factory.HostName) { Enabled = true, Version = SslProtocols.Tls12 };
        var endpoint = new AmqpTcpEndpoint(factory.Protocol, factory.HostName, port, tls);
        return factory.Protocol.CreateConnection(factory, false, factory.Protocol.CreateFrameHandler(endpoint));
    }

    static byte[] FromPem(string pem)
    {
        var lines = pem.Split(new[] { '\n' }, StringSplitOptions.RemoveEmptyEntries);
        return Convert.FromBase64String(string.Concat(lines.Where(line => !line.StartsWith("-----"))));
    }

    /// Sends a message with properties to itself and closes the connection.
    static void RoundTrip(IConnection connection)
    {
        var channel = connection.CreateModel();
        var queue = Exclusive(channel);
        Expect(queue.StartsWith("amq.gen-"), $"not named by the broker: {queue}");

        Publish(channel, "", queue, "hello", properties =>
        {
            properties.ContentType = "text/plain";
            properties.DeliveryMode = 2;
            properties.CorrelationId = "correlation";
            properties.MessageId = "message";
            properties.Type = "greeting";
            properties.Headers = new Hashtable
            {
                { "string", "grün" },
                { "integer", -42 },
                { "long", 1L << 40 },
                { "boolean", true },
                { "timestamp", new AmqpTimestamp(1700000000) },
                { "table", new Hashtable { { "nested", new Hashtable { { "deep", "yes" } } } } },
                { "list", new ArrayList { "one", 2, false } },
            };
        });
        var message = Get(channel, queue);
        ExpectEqual(Text(message.Body), "hello", "body");
        var got = message.BasicProperties;
        ExpectEqual(got.ContentType, "text/plain", "content type");
        ExpectEqual(got.DeliveryMode, (byte)2, "delivery mode");
        ExpectEqual(got.CorrelationId, "correlation", "correlation id");
        ExpectEqual(got.MessageId, "message", "message id");
        ExpectEqual(got.Type, "greeting", "type");
        ExpectHeaders(got.Headers);
        ExpectEmpty(channel, queue);
        channel.Close();
        connection.Close();
        ExpectEqual(connection.CloseReason.ReplyCode, (ushort)200, "code of the close");
    }

    static void ExpectHeaders(IDictionary headers)
    {
        ExpectEqual(headers.Count, 7, "headers");
        ExpectEqual(Text(headers["string"]), "grün", "a string");
        ExpectEqual(headers["integer"], -42, "an integer");
        ExpectEqual(headers["long"], 1L << 40, "a long integer");
        ExpectEqual(headers["boolean"], true, "a boolean");
        ExpectEqual(((AmqpTimestamp)headers["timestamp"]).UnixTime, 1700000000L, "a timestamp");
        var nested = (IDictionary)((IDictionary)headers["table"])["nested"];
        ExpectEqual(Text(nested["deep"]), "yes", "a nested table");
        var list = (IList)headers["list"];
        ExpectEqual(list.Count, 3, "length of the list");
        ExpectEqual(Text(list[0]), "one", "a string in a list");
        ExpectEqual(list[1], 2, "an integer in a list");
        ExpectEqual(list[2], false, "a boolean in a list");
    }

    // The client has neither recovery nor confirms: the program connects again, and a commit says that a message is
    // safe.
    public static void Restart()
    {
        var name = Unique();
        var lost = new ManualResetEventSlim();
        var before = Connected();
        before.ConnectionShutdown += (_, reason) => lost.Set();
        var channel = before.CreateModel();
        channel.ExchangeDeclare(name, "direct", true);
        channel.QueueDeclare(name, true);
        channel.QueueBind(name, name, "work", false, null);
        PublishCommitted(channel, name, "before");
        RestartBroker();
        Expect(lost.Wait(Within), "the connection was not lost");

        using (var after = Connected())
        {
            channel = after.CreateModel();
            var inbox = new Inbox(channel, name);
            inbox.NextIs("before");
            PublishCommitted(after.CreateModel(), name, "after");
            inbox.NextIs("after");
            channel.QueueDelete(name, false, false, false);
            channel.ExchangeDelete(name, false, false);
        }
    }

    static void PublishCommitted(IModel channel, string exchange, string body)
    {
        channel.TxSelect();
        Publish(channel, exchange, "work", body, properties => properties.SetPersistent(true));
        channel.TxCommit();
    }
}
