// The RabbitMQ.Client that Mono brings, through every scenario; ../../README.md says what each does.
//
// It is one of the first of its kind and speaks AMQP 0-9: there are no confirms, no basic.nack, no notice of cancelled
// consumers and no counts in queue.declare-ok.

using System;
using System.Collections.Generic;
using System.Linq;

static class Program
{
    static readonly Dictionary<string, Action> Scenarios = new Dictionary<string, Action>
    {
        { "connect", Connections.Connect },
        { "tls", Connections.Tls },
        { "confirms", () => throw new Without("the client has no publisher confirms") },
        { "prefetch", Consuming.Prefetch },
        { "queue-ttl", Expiry.QueueTtl },
        { "message-ttl", Expiry.MessageTtl },
        { "dead-letter", DeadLetters.DeadLetter },
        { "priorities", Publishing.Priorities },
        { "transactions", Publishing.Transactions },
        { "rpc", Consuming.Rpc },
        { "large", Publishing.Large },
        { "cancel", () => throw new Without("the client is not told when its consumer is cancelled") },
        { "restart", Connections.Restart },
        { "errors", Errors.All },
    };

    static void Main(string[] names)
    {
        Console.WriteLine($"version {Package.Version}");
        var failures = names.Count(name => !Passes(name));
        Environment.Exit(failures == 0 ? 0 : 1);
    }

    static bool Passes(string name)
    {
        try
        {
            Scenarios[name]();
            Console.WriteLine($"ok {name}");
            return true;
        }
        catch (Without why)
        {
            Console.WriteLine($"without {name}: {why.Message}");
            return true;
        }
        catch (Exception error)
        {
            Console.WriteLine(error);
            Console.WriteLine($"failed {name}: {error.Message.Replace('\n', ' ')}");
            return false;
        }
    }
}

/// The client does not offer what a scenario needs.
class Without : Exception
{
    public Without(string why) : base(why) { }
}
