"""The shape of a JSON document: which fields there are and of which type, whatever their values."""

# Figures of the Erlang machine and of what RabbitMQ is made of; another broker has nothing to tell there.
ERLANG = {
    "applications", "backing_queue_status", "context_switches", "erlang_full_version", "erlang_version",
    "garbage_collection", "gc_bytes_reclaimed", "gc_num", "metrics_gc_queue_length", "mnesia_disk_tx_count",
    "mnesia_ram_tx_count", "msg_store_read_count", "msg_store_write_count", "os_pid", "proc_total", "proc_used",
    "queue_index_read_count", "queue_index_write_count", "ra_open_file_metrics", "reductions", "run_queue",
    "sockets_total", "sockets_used", "storage_version", "ets", "code", "binary", "atom",
}


def is_of_erlang(path):
    """Whether a field is one of those, or a rate or a part of one."""
    return any(part.removesuffix("_details") in ERLANG for part in path.replace("[]", "").split("."))


def shape(value, path="", into=None):
    """{path: {type}} of every field; what stands in a list counts once.

    >>> shape({"a": 1, "b": [{"c": "x"}, {"c": None}]}) == {
    ...     "": {"object"}, "a": {"number"}, "b": {"array"}, "b[]": {"object"}, "b[].c": {"string", "null"}}
    True
    """
    into = {} if into is None else into
    into.setdefault(path, set()).add(kind(value))
    if isinstance(value, dict):
        for key, below in value.items():
            shape(below, f"{path}.{key}" if path else key, into)
    elif isinstance(value, list):
        for below in value:
            shape(below, path + "[]", into)
    return into


def kind(value):
    """JSON's word for the type.

    >>> [kind(v) for v in (None, True, 1, 1.5, "a", [], {})]
    ['null', 'boolean', 'number', 'number', 'string', 'array', 'object']
    """
    if isinstance(value, bool):
        return "boolean"
    types = {type(None): "null", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return types[type(value)]


def differences(theirs, ours):
    """(missing, more, other) of two shapes: fields that only RabbitMQ has, that only Leveret has, and others' types.

    Below a field that is missing nothing is told. An empty list has no shape to compare.

    >>> differences(shape({"a": 1, "b": {"c": 2}, "d": [1]}), shape({"a": "1", "d": [], "e": {"f": 3}}))
    (['b'], ['e'], ['a: string, not number'])
    """
    missing = outermost(path for path in theirs if path not in ours and has_parent(path, ours))
    more = outermost(path for path in ours if path not in theirs and has_parent(path, theirs))
    other = [
        f"{path or 'the answer'}: {', '.join(sorted(ours[path]))}, not {', '.join(sorted(theirs[path]))}"
        for path in theirs
        if path in ours and not ours[path] & theirs[path]
    ]
    return missing, more, other


def has_parent(path, among):
    """Whether the other side has the list of which this is an element."""
    return not path.endswith("[]") and ("[]" not in path or path[: path.rindex("[]") + 2] in among)


def outermost(paths):
    """Without those that are below another of them."""
    found = []
    for path in sorted(paths):
        if not any(path.startswith(above + ".") or path.startswith(above + "[") for above in found):
            found.append(path)
    return found
