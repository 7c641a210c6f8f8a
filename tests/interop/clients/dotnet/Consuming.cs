// Scenarios about consumers.

using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;
using RabbitMQ.Client;
using RabbitMQ.Client.Events;
using static Checks;
using static Client;

static class Consuming
{
    public static void Prefetch()
    {
        using (var connection = Connected())
        {
            var channel = connection.CreateModel();
            var queue = Exclusive(channel);
            for (var number = 0; number < 100; number++)
            {
                if (number == 10)
                    Publish(channel, "", queue, "for get");
                Publish(channel, "", queue, $"{number}");
            }
            channel.BasicQos(0, 10, false);
            var inbox = new Inbox(channel, queue, false);
            for (var round = 0; round < 10; round++)
            {
                var tags = Enumerable.Range(10 * round, 10).Select(number => inbox.NextIs($"{number}").DeliveryTag);
                AcknowledgeTen(channel, queue, round, tags.ToList());
            }
            SendBackAndReject(channel, queue, inbox);
            channel.Close(); // what is not acknowledged comes back
            ExpectEmpty(connection.CreateModel(), queue);
        }
    }

    static void AcknowledgeTen(IModel channel, string queue, int round, List<ulong> tags)
    {
        if (round == 0)
        {
            var waiting = Get(channel, queue);
            ExpectEqual(Text(waiting.Body), "for get", "behind the ten that the consumer has");
            ExpectEqual(waiting.MessageCount, 90u, "messages that nobody got yet");
        }
        if (round % 2 == 0)
        {
            tags.ForEach(tag => channel.BasicAck(tag, false));
        }
        else
        {
            channel.BasicAck(tags[4], true);
            channel.BasicAck(tags[9], true);
        }
    }

    static void SendBackAndReject(IModel channel, string queue, Inbox inbox)
    {
        Publish(channel, "", queue, "again");
        Publish(channel, "", queue, "rejected");
        var again = inbox.NextIs("again");
        var rejected = inbox.NextIs("rejected");
        ExpectEqual(again.Redelivered, false, "redelivered the first time");
        channel.BasicReject(again.DeliveryTag, true);
        again = inbox.NextIs("again");
        ExpectEqual(again.Redelivered, true, "redelivered the second time");
        channel.BasicAck(again.DeliveryTag, false);
        channel.BasicReject(rejected.DeliveryTag, false);
    }

    public static void Rpc()
    {
        const int requests = 100;
        using (var server = Connected())
        using (var client = Connected())
        {
            var serving = server.CreateModel();
            var queue = Exclusive(serving);
            var calls = new Inbox(serving, queue);
            var served = Task.Run(() =>
            {
                for (var number = 0; number < requests; number++)
                    Answer(serving, calls.Next("a request"));
            });

            var channel = client.CreateModel();
            var answers = new Inbox(channel, "amq.rabbitmq.reply-to");
            var missing = new Dictionary<string, string>();
            for (var number = 0; number < requests; number++)
            {
                var id = $"id-{number}";
                missing.Add(id, $"answer to question {number}");
                Publish(channel, "", queue, $"question {number}", properties =>
                {
                    properties.CorrelationId = id;
                    properties.ReplyTo = "amq.rabbitmq.reply-to";
                });
            }
            while (missing.Count > 0)
            {
                var answer = answers.Next("an answer");
                var id = answer.BasicProperties.CorrelationId;
                ExpectEqual(Text(answer.Body), missing[id], id);
                missing.Remove(id);
            }
            served.Wait();
        }
    }

    static void Answer(IModel channel, BasicDeliverEventArgs call)
    {
        var request = call.BasicProperties;
        Publish(channel, "", request.ReplyTo, $"answer to {Text(call.Body)}",
                properties => properties.CorrelationId = request.CorrelationId);
    }
}
