"""The scenarios that every client goes through; README.md says what each does, step by step."""

COMMON = (
    "connect",
    "tls",
    "confirms",
    "prefetch",
    "queue-ttl",
    "message-ttl",
    "dead-letter",
    "priorities",
    "transactions",
    "rpc",
    "large",
    "cancel",
    "restart",
    "errors",
)
