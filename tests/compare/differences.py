"""How two shapes of JSON differ: see `shapes.py` of the black-box suite for what a shape is."""


def differences(theirs, ours):
    """(missing, more, other) of two shapes: fields that only RabbitMQ has, that only Leveret has, and others' types.

    Fields below a missing field are not listed. An empty list has no shape to compare.

    >>> theirs = {"": "object", "a": "number", "b": "object", "b.c": "number", "d": "list", "d[]": "number"}
    >>> differences(theirs, {"": "object", "a": "text", "d": "list", "e": "object", "e.f": "number"})
    (['b'], ['e'], ['a: text, not number'])
    """
    missing = outermost(path for path in theirs if path not in ours and has_parent(path, ours))
    more = outermost(path for path in ours if path not in theirs and has_parent(path, theirs))
    other = [
        f"{path or 'the answer'}: {ours[path]}, not {theirs[path]}"
        for path in theirs
        if path in ours and ours[path] != theirs[path]
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
