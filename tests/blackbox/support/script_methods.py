"""The commands of scripts as AMQP methods, and what a broker sends as the effects of scripts."""

import re

import pika
from pika import spec

from script_values import NAMED_PROPERTIES, shown_message, table


def method_of(verb, words):
    """The method of a command, and its content (properties and body) if it has one."""
    make = MAKERS.get(verb)
    assert make is not None, f"what is `{verb}`?"
    made = make(words)
    assert not words.left, f"what is `{words.left}`?"
    return made if isinstance(made, tuple) else (made, None)


def _declare(words):
    flags = {name: words.flag(name.replace("_", "-"))
             for name in ("passive", "durable", "exclusive", "auto_delete", "nowait")}
    arguments = table(words.pairs())
    return spec.Queue.Declare(queue=words.next(), arguments=arguments, **flags)


def _exchange(words):
    flags = {name: words.flag(name.replace("_", "-"))
             for name in ("passive", "durable", "auto_delete", "internal", "nowait")}
    arguments = table(words.pairs())
    return spec.Exchange.Declare(exchange=words.next(), type=words.next(""), arguments=arguments, **flags)


def _delete(words):
    flags = {"if_unused": words.flag("if-unused"), "if_empty": words.flag("if-empty"), "nowait": words.flag("nowait")}
    return spec.Queue.Delete(queue=words.next(), **flags)


def _delete_exchange(words):
    flags = {"if_unused": words.flag("if-unused"), "nowait": words.flag("nowait")}
    return spec.Exchange.Delete(exchange=words.next(), **flags)


def _purge(words):
    nowait = words.flag("nowait")
    return spec.Queue.Purge(queue=words.next(), nowait=nowait)


def _binding(method, destination, source):
    def make(words):
        nowait = {"nowait": True} if words.flag("nowait") else {}
        arguments = table(words.pairs())
        ends = {destination: words.next(), source: words.next()}
        return method(**ends, routing_key=words.next(""), arguments=arguments, **nowait)
    return make


def _publish(words):
    mandatory, persistent = words.flag("mandatory"), words.flag("persistent")
    numbers = {name: words.named(word) for name, word in
               (("delivery_mode", "mode"), ("priority", "priority"), ("timestamp", "timestamp"))}
    properties = {name: int(text) for name, text in numbers.items() if text is not None}
    if persistent:
        properties["delivery_mode"] = 2
    for name in NAMED_PROPERTIES:
        if (text := words.named(name)) is not None:
            properties[name.replace("-", "_")] = text
    has_empty_headers = words.flag("{}")
    headers = table(words.pairs())
    if headers or has_empty_headers:
        properties["headers"] = headers
    method = spec.Basic.Publish(exchange=words.next(), routing_key=words.next(), mandatory=mandatory)
    body = words.next()
    body = b"x" * int(body[:-2]) if re.fullmatch(r"\d+xB", body) else body.encode()
    return method, (pika.BasicProperties(**properties), body)


def _settle(method):
    def make(words):
        flags = {name: True for name in ("multiple", "requeue") if words.flag(name)}
        if method is not spec.Basic.Ack:
            flags.setdefault("requeue", False)
        return method(delivery_tag=int(words.next()), **flags)
    return make


def _consume(words):
    flags = {"no_ack": words.flag("no-ack"), "exclusive": words.flag("exclusive"), "nowait": words.flag("nowait")}
    arguments = table(words.pairs())
    return spec.Basic.Consume(queue=words.next(), consumer_tag=words.next(""), arguments=arguments, **flags)


def _cancel(words):
    nowait = words.flag("nowait")
    return spec.Basic.Cancel(consumer_tag=words.next(), nowait=nowait)


def _get(words):
    no_ack = words.flag("no-ack")
    return spec.Basic.Get(queue=words.next(), no_ack=no_ack)


def _qos(words):
    is_global = words.flag("global")
    return spec.Basic.Qos(prefetch_count=int(words.next()), global_qos=is_global)


def _recover(words):
    return (spec.Basic.RecoverAsync if words.flag("nowait") else spec.Basic.Recover)(requeue=True)


MAKERS = {
    "open": lambda _: spec.Channel.Open(),
    "close-channel": lambda _: spec.Channel.Close(reply_code=200, reply_text="", class_id=0, method_id=0),
    "close-ok": lambda _: spec.Channel.CloseOk(),
    "flow": lambda _: spec.Channel.Flow(active=True),
    "access-request": lambda _: spec.Access.Request(),
    "tx-select": lambda _: spec.Tx.Select(),
    "commit": lambda _: spec.Tx.Commit(),
    "rollback": lambda _: spec.Tx.Rollback(),
    "confirm-select": lambda words: spec.Confirm.Select(nowait=words.flag("nowait")),
    "declare": _declare,
    "exchange": _exchange,
    "delete": _delete,
    "delete-exchange": _delete_exchange,
    "purge": _purge,
    "bind": _binding(spec.Queue.Bind, "queue", "exchange"),
    "unbind": _binding(spec.Queue.Unbind, "queue", "exchange"),
    "bind-exchange": _binding(spec.Exchange.Bind, "destination", "source"),
    "unbind-exchange": _binding(spec.Exchange.Unbind, "destination", "source"),
    "publish": _publish,
    "ack": _settle(spec.Basic.Ack),
    "nack": _settle(spec.Basic.Nack),
    "reject": _settle(spec.Basic.Reject),
    "qos": _qos,
    "consume": _consume,
    "cancel": _cancel,
    "get": _get,
    "recover": _recover,
}

PLAIN = {  # methods that are shown by their name alone, or with what follows it
    spec.Channel.OpenOk: "channel.open-ok",
    spec.Channel.CloseOk: "channel.close-ok",
    spec.Channel.FlowOk: "channel.flow-ok",
    spec.Access.RequestOk: "access.request-ok",
    spec.Exchange.DeclareOk: "exchange.declare-ok",
    spec.Exchange.DeleteOk: "exchange.delete-ok",
    spec.Exchange.BindOk: "exchange.bind-ok",
    spec.Exchange.UnbindOk: "exchange.unbind-ok",
    spec.Queue.DeclareOk: "queue.declare-ok {0.queue} messages={0.message_count} consumers={0.consumer_count}",
    spec.Queue.BindOk: "queue.bind-ok",
    spec.Queue.UnbindOk: "queue.unbind-ok",
    spec.Queue.PurgeOk: "queue.purge-ok {0.message_count}",
    spec.Queue.DeleteOk: "queue.delete-ok {0.message_count}",
    spec.Basic.QosOk: "basic.qos-ok",
    spec.Basic.ConsumeOk: "basic.consume-ok {0.consumer_tag}",
    spec.Basic.CancelOk: "basic.cancel-ok {0.consumer_tag}",
    spec.Basic.Cancel: "basic.cancel {0.consumer_tag}",
    spec.Basic.GetEmpty: "get-empty",
    spec.Basic.RecoverOk: "basic.recover-ok",
    spec.Confirm.SelectOk: "confirm.select-ok",
    spec.Tx.SelectOk: "tx.select-ok",
    spec.Tx.CommitOk: "tx.commit-ok",
    spec.Tx.RollbackOk: "tx.rollback-ok",
}
CLOSES = {spec.Channel.Close: "channel.close", spec.Connection.Close: "connection.close"}


def shown_method(method):
    """A method without content as a script shows it."""
    if type(method) in CLOSES:
        text = re.sub(r"\n\s+", "", method.reply_text)  # RabbitMQ breaks long Erlang terms
        return f"{CLOSES[type(method)]} {method.reply_code} {text}"
    form = PLAIN.get(type(method))
    return f"? {method}" if form is None else form.format(method)


def shown_content(method, properties, body, shows_deaths):
    """A method with content as a script shows it."""
    exchange, routing_key = method.exchange, method.routing_key
    message = shown_message(exchange, routing_key, properties, body, shows_deaths)
    if isinstance(method, spec.Basic.Return):
        reply = "" if method.reply_code == 312 and method.reply_text == "NO_ROUTE" else f" {method.reply_code} {method.reply_text}"
        return f"return{reply} {message}"
    mark = " redelivered" if method.redelivered else ""
    if isinstance(method, spec.Basic.GetOk):
        return f"get-ok #{method.delivery_tag}{mark} {message} left={method.message_count}"
    return f"deliver {method.consumer_tag} #{method.delivery_tag}{mark} {message}"
