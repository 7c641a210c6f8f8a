"""Users and vhosts that one test makes over HTTP, and what they may do."""

from brokers import quoted
from definitions import hash_of

EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}


class Made:
    """What a test has made. Names are behind its prefix; a user's password is his name."""

    def __init__(self, api, prefix):
        self.api, self.prefix = api, prefix
        self.users, self.vhosts = [], []

    def user(self, name="u", tags="", **body):
        """A user; his name."""
        name = self.prefix + name
        self.users.append(name)
        secret = {} if "password" in body or "password_hash" in body else {"password_hash": hash_of(name)}
        self.api.do("PUT", "/api/users/" + quoted(name), {"tags": tags} | secret | body)
        return name

    def vhost(self, name="v", **body):
        """A vhost; its name."""
        name = self.prefix + name
        self.vhosts.append(name)
        self.api.do("PUT", "/api/vhosts/" + quoted(name), body)
        return name

    def permit(self, user, vhost, **permissions):
        """What is not named is allowed."""
        self.api.do("PUT", "/api/permissions/" + quoted(vhost, user), EVERYTHING | permissions)

    def forbid(self, user, vhost):
        """The user has no business in the vhost any more."""
        self.api.do("DELETE", "/api/permissions/" + quoted(vhost, user))

    def limit(self, kind, name, **limits):
        """`limit("user", name, max_channels=2)`; None clears a limit."""
        for limit, value in limits.items():
            path = f"/api/{kind}-limits/" + quoted(name, limit.replace("_", "-"))
            if value is None:
                self.api.do("DELETE", path)
            else:
                self.api.do("PUT", path, {"value": value})

    def remove(self):
        """Everything goes."""
        for vhost in self.vhosts:
            self.api.request("DELETE", "/api/vhosts/" + quoted(vhost) + "/deletion/protection")
            self.api.request("DELETE", "/api/vhosts/" + quoted(vhost))
        for user in self.users:
            self.api.request("DELETE", "/api/users/" + quoted(user))
