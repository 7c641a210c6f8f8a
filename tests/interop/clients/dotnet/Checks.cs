// Saying what is wrong, and waiting.

using System;
using System.Diagnostics;
using System.Threading;

static class Checks
{
    public static readonly TimeSpan Within = TimeSpan.FromSeconds(60);

    public static void Expect(bool holds, string what)
    {
        if (!holds)
            throw new Exception(what);
    }

    public static void ExpectEqual(object got, object wanted, string what)
    {
        Expect(Equals(got, wanted), $"{what}: {got ?? "null"}, not {wanted ?? "null"}");
    }

    /// The error that an action throws; it must.
    public static E ErrorOf<E>(Action action) where E : Exception
    {
        try
        {
            action();
        }
        catch (E error)
        {
            return error;
        }
        throw new Exception($"no {typeof(E).Name} was thrown");
    }

    /// Asks again and again until it holds.
    public static void Eventually(string what, Func<bool> holds, int pauseMs = 10)
    {
        for (var watch = Stopwatch.StartNew(); !holds(); Thread.Sleep(pauseMs))
            Expect(watch.Elapsed < Within, $"not within {Within}: {what}");
    }
}
