// Scenarios about messages and queues that expire.

using System;
using System.Collections;
using RabbitMQ.Client;
using RabbitMQ.Client.Exceptions;
using static Checks;
using static Client;

static class Expiry
{
    public static void QueueTtl()
    {
        using (var connection = Connected())
        {
            var channel = connection.CreateModel();
            var queue = Exclusive(channel, new Hashtable { { "x-message-ttl", 1000 } });
            foreach (var body in new[] { "one", "two", "three" })
                Publish(channel, "", queue, body);
            ExpectEqual(Ready(channel, queue), 3u, "messages at first");
            // Only an empty queue is deleted, which asks without reading.
            Eventually("the messages expire", () =>
                Allowed(connection, 406, asking => asking.QueueDelete(queue, false, true, false)));

            var unused = Unique();
            channel.QueueDeclare(unused, false, false, false, false, false, new Hashtable { { "x-expires", 300 } });
            // To ask is to use the queue: it must be left alone for longer than it lives.
            Eventually("the queue expires",
                       () => !Allowed(connection, 404, asking => Passive(asking, unused)), pauseMs: 500);
        }
    }

    /// Does the broker allow it, or close the channel with this code?
    static bool Allowed(IConnection connection, int refusal, Action<IModel> ask)
    {
        var channel = connection.CreateModel();
        try
        {
            ask(channel);
            channel.Close();
            return true;
        }
        catch (OperationInterruptedException refused) when (refused.ShutdownReason.ReplyCode == refusal)
        {
            return false;
        }
    }

    public static void MessageTtl()
    {
        using (var connection = Connected())
        {
            var channel = connection.CreateModel();
            var queue = Exclusive(channel);
            Publish(channel, "", queue, "short", properties => properties.Expiration = "1000");
            Publish(channel, "", queue, "long", properties => properties.Expiration = "60000");
            ExpectEqual(Ready(channel, queue), 2u, "messages at first");
            Eventually("the first message expires", () => Ready(channel, queue) == 1);
            var second = Get(channel, queue);
            ExpectEqual(Text(second.Body), "long", "what is left");
            ExpectEqual(second.BasicProperties.Expiration, "60000", "expiration");

            Publish(channel, "", queue, "never", properties => properties.Expiration = "0");
            ExpectEmpty(channel, queue);
        }
    }
}
