// Scenarios about publishing.

using System.Collections;
using System.Linq;
using static Checks;
using static Client;

static class Publishing
{
    public static void Priorities()
    {
        using (var connection = Connected())
        {
            var channel = connection.CreateModel();
            var queue = Exclusive(channel, new Hashtable { { "x-max-priority", 5 } });
            Publish(channel, "", queue, "1", properties => properties.Priority = 1);
            Publish(channel, "", queue, "5", properties => properties.Priority = 5);
            Publish(channel, "", queue, "3", properties => properties.Priority = 3);
            Publish(channel, "", queue, "without");
            foreach (var wanted in new[] { "5", "3", "1", "without" })
                ExpectNext(channel, queue, wanted);
        }
    }

    public static void Transactions()
    {
        using (var connection = Connected())
        {
            var channel = connection.CreateModel();
            var observer = connection.CreateModel();
            var queue = Exclusive(channel);
            channel.TxSelect();
            Publish(channel, "", queue, "rolled back");
            Publish(channel, "", queue, "rolled back too");
            channel.TxRollback();
            ExpectEqual(Ready(observer, queue), 0u, "messages after the rollback");
            Publish(channel, "", queue, "one");
            Publish(channel, "", queue, "two");
            ExpectEqual(Ready(observer, queue), 0u, "messages before the commit");
            channel.TxCommit();
            ExpectEqual(Ready(observer, queue), 2u, "messages after the commit");

            channel.BasicAck(Get(channel, queue, false).DeliveryTag, false);
            channel.TxCommit();
            channel.Close(); // what is not acknowledged comes back
            ExpectNext(observer, queue, "two");
            ExpectEmpty(observer, queue);
        }
    }

    // Without confirms, the commit says that the broker has the message.
    public static void Large()
    {
        using (var connection = Connected())
        {
            var channel = connection.CreateModel();
            var queue = Exclusive(channel);
            var body = Enumerable.Range(0, 20000000).Select(number => (byte)(number % 251)).ToArray();
            channel.TxSelect();
            channel.BasicPublish("", queue, null, body);
            channel.TxCommit();
            Expect(Get(channel, queue).Body.SequenceEqual(body), "the message is another one");
        }
    }
}
