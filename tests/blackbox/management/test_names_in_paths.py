"""Names with characters that mean something in an address: each object is found and removed under its name, quoted once."""

import pytest

from brokers import quoted

# Those of addresses, of quoting itself, of forms, of shells, spaces and letters of more than one byte.
CHARACTERS = "/?#&=+%;:@!$'()*,[] ~^|\\\"<>`{}é€"
FAMILIES = {
    "vhosts": ("vhosts/{name}", {}),
    "users": ("users/{name}", {"password": "secret", "tags": ""}),
    "exchanges": ("exchanges/%2F/{name}", {"type": "direct"}),
    "queues": ("queues/%2F/{name}", {"durable": True}),
    "policies": ("policies/%2F/{name}", {"pattern": "^nothing$", "definition": {"max-length": 1}}),
    "operator-policies": ("operator-policies/%2F/{name}", {"pattern": "^nothing$", "definition": {"max-length": 1}}),
    "global-parameters": ("global-parameters/{name}", {"value": 1}),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_objects_are_found_by_names_quoted_once(api, prefix, family):
    path, body = FAMILIES[family]
    names = [f"{prefix}{character}%2F{character}" for character in CHARACTERS]
    at = {name: "/api/" + path.format(name=quoted(name)) for name in names}
    try:
        for name in names:
            assert api.ask(at[name], method="PUT", body=body).status == 201, name
        listed = {one["name"] for one in api.ask("/api/" + path.partition("/{name}")[0]).json}
        assert set(names) <= listed
        for name in names:
            found = api.ask(at[name])
            assert (found.status, found.json["name"]) == (200, name)
            assert api.ask(at[name], method="DELETE").status == 204
            assert api.ask(at[name]).status == 404
    finally:
        for name in names:
            api.ask(at[name], method="DELETE")


def test_bindings_are_found_by_keys_quoted_once(api, prefix):
    queue = prefix + "bound"
    api.do("PUT", "/api/queues/%2F/" + quoted(queue), {"durable": True})
    at = f"/api/bindings/%2F/e/amq.direct/q/{quoted(queue)}"
    try:
        for character in CHARACTERS:
            key = f"a{character}b%3D"
            api.do("POST", at, {"routing_key": key})
            [bound] = [one for one in api.ask(at).json if one["routing_key"] == key]
            one = f"{at}/{quoted(bound['properties_key'])}"
            assert api.ask(one).json["routing_key"] == key
            assert api.ask(one, method="DELETE").status == 204
            assert api.ask(one).status == 404
    finally:
        api.ask("/api/queues/%2F/" + quoted(queue), method="DELETE")
