// What applications read in the client's exceptions.

using System;
using System.Collections;
using System.Linq;
using RabbitMQ.Client;
using RabbitMQ.Client.Exceptions;
using static Checks;
using static Client;

static class Errors
{
    public static void All()
    {
        using (var connection = Connected())
        using (var other = Connected())
        {
            OfChannels(connection, Exclusive(other.CreateModel()));
        }

        // The client does not ask to be told: the broker can only close its socket.
        var factory = Factory();
        factory.Password = "wrong";
        Refusal<PossibleAuthenticationFailureException>(factory);

        factory = Factory();
        factory.VirtualHost = "nope";
        ExpectReason(Refusal<OperationInterruptedException>(factory).ShutdownReason, 530,
                     "NOT_ALLOWED - vhost nope not found");
    }

    static E Refusal<E>(ConnectionFactory factory) where E : Exception
    {
        var error = ErrorOf<BrokerUnreachableException>(() => factory.CreateConnection());
        return (E)error.ConnectionErrors.Values.Cast<Exception>().Single();
    }

    /// Each closes its channel, and the connection lives on.
    static void OfChannels(IConnection connection, string locked)
    {
        var name = Unique();
        ExpectClosed(connection, channel => Passive(channel, name), 404, $"NOT_FOUND - no queue '{name}' in vhost '/'");

        connection.CreateModel().QueueDeclare(name, false, false, true, false, false, null);
        var arguments = new Hashtable { { "x-message-ttl", 1000 } };
        ExpectClosed(connection, channel => channel.QueueDeclare(name, false, false, true, false, false, arguments),
                     406, $"PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue '{name}' in vhost '/': ");

        ExpectClosed(connection, channel =>
        {
            Publish(channel, "", name, "never", properties => properties.Expiration = "abc");
            channel.BasicGet(name, true);
        }, 406, "PRECONDITION_FAILED - invalid expiration 'abc': ");

        ExpectClosed(connection, channel => Passive(channel, locked), 405,
                     $"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{locked}' in vhost '/'. ");
        ExpectEmpty(connection.CreateModel(), name);
    }

    static void ExpectClosed(IConnection connection, Action<IModel> provoke, int code, string text)
    {
        var channel = connection.CreateModel();
        var error = ErrorOf<OperationInterruptedException>(() => provoke(channel));
        ExpectReason(error.ShutdownReason, code, text);
        Expect(!channel.IsOpen, "the channel is still open");
    }

    static void ExpectReason(ShutdownEventArgs reason, int code, string text)
    {
        Expect(reason.ReplyCode == code && reason.ReplyText.StartsWith(text), $"not {code} {text}: {reason}");
    }
}
