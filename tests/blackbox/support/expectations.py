"""Words that many tests share: arguments that always go together, and RabbitMQ's recurring texts."""

ERLANG_TYPE = {  # what RabbitMQ calls a wire type in its texts
    "t": "bool", "S": "longstr", "d": "double", "f": "float", "D": "decimal", "T": "timestamp", "F": "table",
    "A": "array", "x": "binary", "V": "void", "b": "byte", "B": "unsignedbyte", "s": "short", "u": "unsignedshort",
    "I": "signedint", "i": "unsignedint", "l": "long", "L": "long",
}

NOTHING = "^$"  # a permission that matches no name

TEN_YEARS_MS = 315_360_000_000

LOCKED = (
    "cannot obtain exclusive access to locked queue '{queue}' in vhost '/'. It could be originally declared on another "
    "connection or the exclusive property value does not match that of the original declaration."
)


def dead_letters_to(queue):
    """Keywords for a queue whose dead letters go straight to another one."""
    return {"dead_letter_exchange": "", "dead_letter_routing_key": queue}


def bad_argument(argument, queue, reason):
    """The explanation of a refused queue argument."""
    return f"invalid arg '{argument}' for queue '{queue}' in vhost '/': {reason}"


def inequivalent(argument, queue, received, current):
    """The explanation of a redeclaration with another value."""
    difference = f"received '{received}' but current is '{current}'"
    return f"inequivalent arg '{argument}' for queue '{queue}' in vhost '/': {difference}"


def no_access(permission, resource, name, user):
    """The explanation of a missing permission."""
    return f"{permission} access to {resource} '{name}' in vhost '/' refused for user '{user}'"
