// The broker's table of settings. Generated: UPDATE=1 cargo test -p leveret-management --test settings_shown
//
// `key` is the policy key, `argument` the queue argument. `of` tells which names belong into the place of the value; `on`
// is what has the setting, if not every queue; `keepsFrom` is the type of queue that the whole policy passes by for the
// key; `isOperators` says that operator policies may have it. Whether a value is right is for the server to say.

export const SETTINGS = [
  {"group":"Expiry","key":"message-ttl","argument":"x-message-ttl","type":"number","unit":"ms","isOperators":true,"hint":"Time after which a message expires.","button":"Message TTL (ms)"},
  {"group":"Expiry","key":"expires","argument":"x-expires","type":"number","unit":"ms","isOperators":true,"hint":"Time after which an unused queue is deleted.","button":"Delete when unused (ms)"},
  {"group":"Expiry","key":"expiry-order","argument":"x-expiry-order","type":"choice","choices":["deadline","head"],"isOperators":true,"hint":"deadline: each message expires at its own time. head: only at the front of the queue, as in RabbitMQ.","button":"Expiry order","example":"head"},
  {"group":"Length","key":"max-length","argument":"x-max-length","type":"number","isOperators":true,"hint":"Limit of ready messages.","button":"Max length"},
  {"group":"Length","key":"max-length-bytes","argument":"x-max-length-bytes","type":"number","unit":"bytes","isOperators":true,"hint":"Limit of the bodies of ready messages, in bytes.","button":"Max length (bytes)"},
  {"group":"Length","key":"overflow","argument":"x-overflow","type":"choice","choices":["drop-head","reject-publish","reject-publish-dlx"],"isOperators":true,"hint":"What happens at the limit: drop-head removes the oldest message, reject-publish refuses the new one.","button":"Overflow","example":"reject-publish"},
  {"group":"Dead letters","key":"dead-letter-exchange","argument":"x-dead-letter-exchange","type":"text","of":"exchanges","hint":"Exchange for messages that expire, are rejected or exceed a limit. Empty: the default exchange, where the routing key is the name of a queue.","button":"Dead-letter exchange"},
  {"group":"Dead letters","key":"dead-letter-routing-key","argument":"x-dead-letter-routing-key","type":"text","of":"queues","hint":"Routing key of dead letters. Without it, dead letters keep their routing keys.","button":"Dead-letter routing key"},
  {"group":"Dead letters","key":"dead-letter-strategy","argument":"x-dead-letter-strategy","type":"choice","choices":["at-most-once","at-least-once"],"on":"quorum","keepsFrom":"classic","hint":"at-least-once: a dead letter is kept until another queue has it.","button":"Dead-letter strategy","example":"at-least-once"},
  {"group":"Delivery","key":"delivery-limit","argument":"x-delivery-limit","type":"number","keepsFrom":"classic","isOperators":true,"hint":"A message that fails more often than this dies. Negative: no limit.","button":"Delivery limit"},
  {"group":"Delivery","key":"consumer-timeout","argument":"x-consumer-timeout","type":"number","unit":"ms","on":"quorum","hint":"Time within which a consumer must acknowledge a message.","button":"Consumer timeout (ms)"},
  {"group":"Delivery","key":"delayed-retry-type","argument":"x-delayed-retry-type","type":"choice","choices":["all","failed","returned","disabled"],"isOperators":true,"hint":"Which returned messages wait before the next delivery."},
  {"group":"Delivery","key":"delayed-retry-min","argument":"x-delayed-retry-min","type":"number","unit":"ms","isOperators":true,"hint":"Wait after the first failed delivery."},
  {"group":"Delivery","key":"delayed-retry-max","argument":"x-delayed-retry-max","type":"number","unit":"ms","isOperators":true,"hint":"Longest wait."},
  {"group":"Delivery","key":"delayed-retry-multiplier","argument":"x-delayed-retry-multiplier","type":"number","isOperators":true,"hint":"Each wait is so many times the one before. 1: all waits are the same."},
  {"group":"Delivery","key":"delayed-retry-jitter","argument":"x-delayed-retry-jitter","type":"number","isOperators":true,"hint":"Part of the wait by which it varies from message to message: 0.2 for 80 to 120 %."},
  {"group":"Delivery","key":"delayed-retry-schedule","argument":"x-delayed-retry-schedule","type":"text","isOperators":true,"hint":"The waits one by one, such as 1s,10s,5m; the last one repeats."},
  {"group":"Delivery","key":"delayed-retry-count","argument":"x-delayed-retry-count","type":"choice","choices":["delivery","acquired"],"isOperators":true,"hint":"delivery: failed deliveries lengthen the wait. acquired: all deliveries do, those that basic.nack ends, too."},
  {"group":"Delivery","key":"delivery-limit-count","argument":"x-delivery-limit-count","type":"choice","choices":["delivery","acquired"],"isOperators":true,"hint":"delivery: failed deliveries count against the limit. acquired: all deliveries do."},
  {"group":"Delivery","key":"delayed-retry-order","argument":"x-delayed-retry-order","type":"choice","choices":["due","strict"],"isOperators":true,"hint":"due: other messages pass one that waits for its next delivery. strict: with a single active consumer, the queue delivers nothing until the wait is over."},
  {"group":"Delivery","key":"delivery-limit-action","argument":"x-delivery-limit-action","type":"choice","choices":["drop","keep"],"isOperators":true,"hint":"What happens at the delivery limit to a message that no dead-letter exchange takes. drop: it is lost. keep: the queue keeps it, to be seen, redriven or purged."},
  {"group":"Delivery","argument":"x-max-priority","type":"number","on":"classic","button":"Max priority","example":5},
  {"group":"Delivery","argument":"x-single-active-consumer","type":"boolean","button":"Single active consumer","example":true},
  {"group":"Exchanges","key":"alternate-exchange","type":"text","of":"exchanges","on":"exchanges","hint":"Exchange for messages that match no binding."},
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
