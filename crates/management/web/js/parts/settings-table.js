// The broker's table of settings. Generated: UPDATE=1 cargo test -p leveret-management --test settings_shown
//
// `key` is the policy key, `argument` the queue argument. `of` tells which names belong into the place of the value; `on`
// is what has the setting, if not every queue; `keepsFrom` is the type of queue that the whole policy passes by for the
// key; `isOperators` says that operator policies may have it. Whether a value is right is for the server to say.

export const SETTINGS = [
  {"group":"Expiry","key":"message-ttl","argument":"x-message-ttl","type":"number","unit":"ms","isOperators":true,"hint":"A message leaves so long after it came.","button":"Message TTL (ms)"},
  {"group":"Expiry","key":"expires","argument":"x-expires","type":"number","unit":"ms","isOperators":true,"hint":"The queue is deleted when nobody has used it for so long.","button":"Delete when unused (ms)"},
  {"group":"Expiry","key":"expiry-order","argument":"x-expiry-order","type":"choice","choices":["deadline","head"],"isOperators":true,"hint":"deadline: each message leaves at its own time. head: only at the front of the queue, as in RabbitMQ.","button":"Expiry order","example":"head"},
  {"group":"Length","key":"max-length","argument":"x-max-length","type":"number","isOperators":true,"hint":"So many messages may wait.","button":"Max length"},
  {"group":"Length","key":"max-length-bytes","argument":"x-max-length-bytes","type":"number","unit":"bytes","isOperators":true,"hint":"Bodies of so many bytes may wait.","button":"Max length (bytes)"},
  {"group":"Length","key":"overflow","argument":"x-overflow","type":"choice","choices":["drop-head","reject-publish","reject-publish-dlx"],"isOperators":true,"hint":"What happens beyond the length: the oldest leaves, or the new one is refused.","button":"Overflow","example":"reject-publish"},
  {"group":"Dead letters","key":"dead-letter-exchange","argument":"x-dead-letter-exchange","type":"text","of":"exchanges","hint":"Where messages go that expire, are rejected or are too many. Empty: the default exchange, whose routing key is the name of a queue.","button":"Dead-letter exchange"},
  {"group":"Dead letters","key":"dead-letter-routing-key","argument":"x-dead-letter-routing-key","type":"text","of":"queues","hint":"Their key then; without it they keep their own.","button":"Dead-letter routing key"},
  {"group":"Dead letters","key":"dead-letter-strategy","argument":"x-dead-letter-strategy","type":"choice","choices":["at-most-once","at-least-once"],"on":"quorum","keepsFrom":"classic","hint":"at-least-once: a dead letter is kept until another queue has it.","button":"Dead-letter strategy","example":"at-least-once"},
  {"group":"Delivery","key":"delivery-limit","argument":"x-delivery-limit","type":"number","on":"quorum","keepsFrom":"classic","isOperators":true,"hint":"A message dies when it has failed more often than so; negative: never.","button":"Delivery limit"},
  {"group":"Delivery","key":"consumer-timeout","argument":"x-consumer-timeout","type":"number","unit":"ms","on":"quorum","hint":"A consumer must acknowledge within so long.","button":"Consumer timeout (ms)"},
  {"group":"Delivery","key":"delayed-retry-type","argument":"x-delayed-retry-type","type":"choice","choices":["all","failed","returned","disabled"],"on":"quorum","isOperators":true,"hint":"Which messages wait before they are delivered again."},
  {"group":"Delivery","key":"delayed-retry-min","argument":"x-delayed-retry-min","type":"number","unit":"ms","on":"quorum","isOperators":true,"hint":"They wait so long for each failure."},
  {"group":"Delivery","key":"delayed-retry-max","argument":"x-delayed-retry-max","type":"number","unit":"ms","on":"quorum","isOperators":true,"hint":"But no longer than this."},
  {"group":"Delivery","argument":"x-max-priority","type":"number","on":"classic","button":"Max priority","example":5},
  {"group":"Delivery","argument":"x-single-active-consumer","type":"boolean","button":"Single active consumer","example":true},
  {"group":"Exchanges","key":"alternate-exchange","type":"text","of":"exchanges","on":"exchanges","hint":"Where messages go that match no binding."},
  {"group":"Without effect","key":"consumer-disconnected-timeout","argument":"x-consumer-disconnected-timeout","type":"number","unit":"ms","on":"quorum"},
  {"group":"Without effect","key":"target-group-size","type":"number","on":"quorum","keepsFrom":"classic","isOperators":true},
  {"group":"Without effect","key":"max-in-memory-length","argument":"x-max-in-memory-length","type":"number","on":"quorum","keepsFrom":"classic","isOperators":true},
  {"group":"Without effect","key":"max-in-memory-bytes","argument":"x-max-in-memory-bytes","type":"number","unit":"bytes","on":"quorum","keepsFrom":"classic","isOperators":true},
  {"group":"Without effect","key":"queue-version","argument":"x-queue-version","type":"number","on":"classic","isOperators":true},
  {"group":"Without effect","key":"queue-mode","argument":"x-queue-mode","type":"choice","choices":["default","lazy"],"on":"classic","keepsFrom":"quorum"},
  {"group":"Without effect","key":"queue-leader-locator","argument":"x-queue-leader-locator","type":"choice","choices":["client-local","balanced","random","least-leaders"]},
  {"group":"Without effect","argument":"x-quorum-initial-group-size","type":"number","on":"quorum"},
  {"group":"Without effect","argument":"x-queue-master-locator","type":"choice","choices":[],"on":"classic"},
];
