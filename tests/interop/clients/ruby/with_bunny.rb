# Bunny, through every scenario; ../../README.md says what each does.

require "bunny"
require "stringio"

require_relative "runner"
require_relative "connections"
require_relative "publishing"
require_relative "consuming"
require_relative "expiry"
require_relative "dead_letters"

run Bunny::VERSION,
    "connect" => -> { connect },
    "tls" => -> { tls },
    "confirms" => -> { confirms },
    "prefetch" => -> { prefetch },
    "queue-ttl" => -> { queue_ttl },
    "message-ttl" => -> { message_ttl },
    "dead-letter" => -> { dead_letter },
    "priorities" => -> { priorities },
    "transactions" => -> { transactions },
    "rpc" => -> { rpc },
    "large" => -> { large },
    "cancel" => -> { cancel },
    "restart" => -> { restart },
    "errors" => -> { errors }
