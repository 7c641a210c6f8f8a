// What happens to dead letters, and what the broker writes on them.

using System;
using System.Collections;
using System.Linq;
using RabbitMQ.Client;
using RabbitMQ.Client.Events;
using static Checks;
using static Client;

static class DeadLetters
{
    public static void DeadLetter()
    {
        using (var connection = Connected())
        {
            var channel = connection.CreateModel();
            var exchange = Unique();
            channel.ExchangeDeclare(exchange, "direct", false, false, true, false, false, null);
            var dead = new Inbox(channel, Bound(channel, exchange, "dead", null));
            var arguments = new Hashtable
            {
                { "x-dead-letter-exchange", exchange },
                { "x-dead-letter-routing-key", "dead" },
            };
            var queue = Bound(channel, exchange, "work", arguments);

            Publish(channel, exchange, "work", "too late", properties => properties.Expiration = "100");
            var expired = dead.NextIs("too late");
            var death = ExpectDeath(expired, "expired", queue, exchange, "work");
            ExpectEqual(Text(death["original-expiration"]), "100", "original-expiration");
            ExpectEqual(expired.BasicProperties.IsExpirationPresent(), false, "an expiration");

            Publish(channel, exchange, "work", "unwanted");
            channel.BasicReject(Get(channel, queue, false).DeliveryTag, false);
            death = ExpectDeath(dead.NextIs("unwanted"), "rejected", queue, exchange, "work");
            ExpectEqual(death.Contains("original-expiration"), false, "an original-expiration");

            arguments.Add("x-max-length", 1);
            var small = Bound(channel, exchange, "small", arguments);
            Publish(channel, exchange, "small", "pushed out");
            Publish(channel, exchange, "small", "stays");
            ExpectDeath(dead.NextIs("pushed out"), "maxlen", small, exchange, "small");

            Retry(channel);
        }
    }

    static string Bound(IModel channel, string exchange, string key, IDictionary arguments)
    {
        var queue = Exclusive(channel, arguments);
        channel.QueueBind(queue, exchange, key, false, null);
        return queue;
    }

    /// Checks what the broker writes on a message that died once, and returns the table of its death.
    static IDictionary ExpectDeath(BasicDeliverEventArgs message, string reason, string queue, string exchange,
                                   string key)
    {
        var headers = message.BasicProperties.Headers;
        var death = ((IList)headers["x-death"]).Cast<IDictionary>().Single();
        ExpectEqual(death["count"], 1L, "count");
        ExpectEqual(Text(death["reason"]), reason, "reason");
        ExpectEqual(Text(death["queue"]), queue, "queue");
        ExpectEqual(Text(death["exchange"]), exchange, "exchange");
        ExpectEqual(string.Join(" ", ((IList)death["routing-keys"]).Cast<object>().Select(Text)), key, "routing-keys");
        var ageS = DateTimeOffset.UtcNow.ToUnixTimeSeconds() - ((AmqpTimestamp)death["time"]).UnixTime;
        Expect(Math.Abs(ageS) < 60, $"a death {ageS} s ago");
        ExpectEqual(Text(headers["x-first-death-reason"]), reason, "x-first-death-reason");
        ExpectEqual(Text(headers["x-first-death-queue"]), queue, "x-first-death-queue");
        ExpectEqual(Text(headers["x-first-death-exchange"]), exchange, "x-first-death-exchange");
        return death;
    }

    /// Rejects a message twice into a queue from which it comes back.
    static void Retry(IModel channel)
    {
        var work = Unique();
        var wait = Exclusive(channel, new Hashtable
        {
            { "x-message-ttl", 100 },
            { "x-dead-letter-exchange", "" },
            { "x-dead-letter-routing-key", work },
        });
        channel.QueueDeclare(work, false, false, true, false, false, new Hashtable
        {
            { "x-dead-letter-exchange", "" },
            { "x-dead-letter-routing-key", wait },
        });
        var inbox = new Inbox(channel, work, false);
        Publish(channel, "", work, "try");
        channel.BasicReject(inbox.NextIs("try").DeliveryTag, false);
        channel.BasicReject(inbox.NextIs("try").DeliveryTag, false);

        var deaths = ((IList)inbox.NextIs("try").BasicProperties.Headers["x-death"]).Cast<IDictionary>();
        var told = deaths.Select(death => $"{Text(death["reason"])} {Text(death["queue"])} {death["count"]}");
        ExpectEqual(string.Join(", ", told), $"expired {wait} 2, rejected {work} 2", "x-death");
    }
}
