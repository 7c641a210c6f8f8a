'use strict';
// rabbitmq-client, through every scenario; ../../README.md says what each does.

const assert = require('node:assert/strict');
const { Connection, ConsumerStatus } = require('rabbitmq-client');

const {
  HOST, PORT, TLS_PORT, LARGE, ERRORS, EXPIRES_MS, authority, unique, eventually, event, take, expires, checkDied,
  checkRetried, version, restartBroker, run,
} = require('./runner.js');

const PLAIN = { hostname: HOST, port: PORT, username: 'guest', password: 'guest', retryLow: 50, retryHigh: 200 };

const seconds = (time) => time; // the client reads timestamps as numbers
const depth = async (on, queue) => (await on.queueDeclare({ queue, passive: true })).messageCount;
const missing = (error) => error.code === 'NOT_FOUND';

/** A connection that is established. Errors that no promise tells are events, and not expected. */
async function open(options) {
  const rabbit = new Connection({ ...PLAIN, ...options });
  rabbit.on('error', (error) => console.log('connection:', error));
  await rabbit.onConnect(60000);
  return rabbit;
}

/** A scenario on a connection with a channel for confirmed messages, closed in order. */
function confirmed(steps) {
  return async () => {
    const rabbit = await open();
    const channel = await rabbit.acquire();
    await channel.confirmSelect();
    await steps(channel, rabbit);
    await channel.close();
    await rabbit.close();
  };
}

async function propertiesComeBack(rabbit) {
  const channel = await rabbit.acquire();
  const { queue } = await channel.queueDeclare({ exclusive: true });
  assert.match(queue, /^amq\.gen-/);
  const properties = {
    contentType: 'application/json',
    headers: {
      text: 'Häsin', number: 70_000, large: 2 ** 40, fraction: 0.5, flag: true, nothing: null,
      nested: { deep: { list: [1, 'two', false, { three: 3 }] } },
      list: ['a', -1, ['b']],
    },
    durable: true, correlationId: 'correlation', messageId: 'message', timestamp: 1_700_000_001, type: 'greeting',
  };
  await channel.basicPublish({ routingKey: queue, ...properties }, { hello: ['you', 1] });
  const message = await channel.basicGet({ queue, noAck: true });
  assert.deepEqual(message.body, { hello: ['you', 1] });
  for (const [name, value] of Object.entries(properties)) assert.deepEqual(message[name], value, name);
  assert.equal(await channel.basicGet({ queue, noAck: true }), undefined);
  await channel.close();
  await rabbit.close();
}

async function connect() {
  await propertiesComeBack(await open());
}

async function tls() {
  const stranger = new Connection({ ...PLAIN, port: TLS_PORT, tls: true });
  assert.equal((await event(stranger, 'error')).code, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE');
  await stranger.close();
  await propertiesComeBack(await open({ port: TLS_PORT, tls: { ca: [authority()] } }));
}

async function confirms(channel, rabbit) {
  const queue = unique();
  const publisher = rabbit.createPublisher({ confirm: true, queues: [{ queue, durable: true }] });
  const sent = Array.from({ length: 1000 }, (_, i) => publisher.send({ routingKey: queue, durable: true }, `${i}`));
  assert.equal((await Promise.all(sent)).length, 1000);
  assert.equal(await depth(rabbit, queue), 1000);
  await rabbit.queueDelete(queue);

  const returned = event(publisher, 'basic.return');
  await publisher.send({ routingKey: queue, mandatory: true }, 'nowhere');
  const { replyCode, replyText, body } = await returned;
  assert.deepEqual([replyCode, replyText, body], [312, 'NO_ROUTE', 'nowhere']);
  await publisher.close();

  const one = { 'x-max-length': 1, 'x-overflow': 'reject-publish' };
  await channel.queueDeclare({ queue, exclusive: true, arguments: one });
  await channel.basicPublish(queue, 'taken');
  await assert.rejects(channel.basicPublish(queue, 'refused'), { name: 'AMQPError', code: 'NACK' });
}

async function prefetch(channel, rabbit) {
  const queue = unique();
  await channel.queueDeclare({ queue, durable: true });
  await Promise.all(Array.from({ length: 100 }, (_, i) => channel.basicPublish(queue, `${i}`)));

  const consuming = await rabbit.acquire();
  await consuming.basicQos({ prefetchCount: 10 });
  const received = [];
  await consuming.basicConsume({ queue }, (message) => received.push(message));
  const bodies = [];
  for (let ready = 90; ready >= 0; ready -= 10) {
    const messages = await take(received, 10);
    assert.equal(await depth(consuming, queue), ready);
    assert.equal(received.length, 0);
    bodies.push(...messages.map((message) => message.body));
    for (const { deliveryTag } of messages.slice(0, 5)) consuming.basicAck({ deliveryTag });
    consuming.basicAck({ deliveryTag: messages[9].deliveryTag, multiple: true });
  }
  assert.deepEqual(bodies, Array.from({ length: 100 }, (_, i) => `${i}`));
  await consuming.close();
  assert.equal(await depth(channel, queue), 0);

  const consumer = rabbit.createConsumer({ queue, queueOptions: { durable: true } }, async (message) => {
    received.push(message);
    return message.redelivered ? ConsumerStatus.DROP : ConsumerStatus.REQUEUE;
  });
  await channel.basicPublish(queue, 'again');
  const [sentBack, again] = await take(received, 2);
  assert.deepEqual([sentBack.body, sentBack.redelivered], ['again', false]);
  assert.deepEqual([again.body, again.redelivered], ['again', true]);
  await consumer.close();
  assert.deepEqual([consumer.stats.requeued, consumer.stats.dropped, received.length], [1, 1, 0]);
  assert.equal(await depth(channel, queue), 0);
  await channel.queueDelete(queue);
}

async function queueTtl(channel, rabbit) {
  const queue = unique();
  await channel.queueDeclare({ queue, durable: true, arguments: { 'x-message-ttl': 1000 } });
  for (let i = 0; i < 3; i++) await channel.basicPublish(queue, `${i}`);
  assert.equal(await depth(channel, queue), 3);
  await eventually(async () => (await depth(channel, queue)) === 0, 'three messages expire');
  await channel.queueDelete(queue);

  await channel.queueDeclare({ queue, durable: true, arguments: { 'x-expires': EXPIRES_MS } });
  await expires(() => depth(rabbit, queue).then(() => false, missing));
}

async function messageTtl(channel) {
  const { queue } = await channel.queueDeclare({ exclusive: true });
  await channel.basicPublish({ routingKey: queue, expiration: '1000' }, 'first');
  await channel.basicPublish({ routingKey: queue, expiration: '60000' }, 'second');
  assert.equal(await depth(channel, queue), 2);
  await eventually(async () => (await depth(channel, queue)) === 1, 'the first message expires');
  const second = await channel.basicGet({ queue, noAck: true });
  assert.deepEqual([second.body, second.expiration], ['second', '60000']);

  await channel.basicPublish({ routingKey: queue, expiration: '0' }, 'never');
  assert.equal(await channel.basicGet({ queue, noAck: true }), undefined);
}

async function deadLetter(channel) {
  const [exchange, work, short, dead] = [unique(), unique(), unique(), unique()];
  const toDead = { 'x-dead-letter-exchange': exchange, 'x-dead-letter-routing-key': dead };
  await channel.exchangeDeclare({ exchange, type: 'direct', autoDelete: true });
  await channel.queueDeclare({ queue: dead, exclusive: true });
  await channel.queueDeclare({ queue: work, exclusive: true, arguments: toDead });
  await channel.queueDeclare({ queue: short, exclusive: true, arguments: { ...toDead, 'x-max-length': 1 } });
  for (const queue of [dead, work, short]) await channel.queueBind({ queue, exchange, routingKey: queue });
  const received = [];
  await channel.basicConsume({ queue: dead, noAck: true }, (message) => received.push(message));

  await channel.basicPublish({ exchange, routingKey: work, expiration: '100' }, 'expires');
  const [expired] = await take(received, 1);
  assert.deepEqual([expired.body, expired.expiration], ['expires', undefined]);
  checkDied(expired.headers, 'expired', work, exchange, seconds, { 'original-expiration': '100' });

  await channel.basicPublish({ exchange, routingKey: work }, 'refused');
  const { deliveryTag } = await channel.basicGet(work);
  channel.basicNack({ deliveryTag, requeue: false });
  const [rejected] = await take(received, 1);
  assert.equal(rejected.body, 'refused');
  checkDied(rejected.headers, 'rejected', work, exchange, seconds);

  await channel.basicPublish({ exchange, routingKey: short }, 'pushed out');
  await channel.basicPublish({ exchange, routingKey: short }, 'stays');
  const [dropped] = await take(received, 1);
  assert.equal(dropped.body, 'pushed out');
  checkDied(dropped.headers, 'maxlen', short, exchange, seconds);
}

async function retry(channel, rabbit) {
  const [work, wait] = [unique(), unique()];
  const back = { 'x-message-ttl': 100, 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': work };
  await channel.queueDeclare({ queue: wait, exclusive: true, arguments: back });
  const received = [];
  const consumer = rabbit.createConsumer({
    queue: work,
    queueOptions: { exclusive: true, arguments: { 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': wait } },
    requeue: false,
  }, async (message) => {
    received.push(message);
    if (received.length < 3) throw new Error('not now');
  });
  let refused = 0;
  consumer.on('error', (error) => { refused += error.message === 'not now' ? 1 : 0; });
  await event(consumer, 'ready');
  await channel.basicPublish(work, 'try');
  const [, , third] = await take(received, 3);
  checkRetried(third.headers, work, wait, seconds);
  await consumer.close();
  assert.equal(refused, 2);
}

async function priorities(channel) {
  const { queue } = await channel.queueDeclare({ exclusive: true, arguments: { 'x-max-priority': 5 } });
  for (const priority of [1, 5, 3, undefined]) {
    await channel.basicPublish({ routingKey: queue, priority }, `${priority}`);
  }
  for (const priority of [5, 3, 1, undefined]) {
    const message = await channel.basicGet({ queue, noAck: true });
    assert.deepEqual([message.body, message.priority], [`${priority}`, priority]);
  }
}

async function transactions() {
  const rabbit = await open();
  const { queue } = await rabbit.queueDeclare({ exclusive: true });
  const channel = await rabbit.acquire();
  await channel.txSelect();
  const publishTwo = () => Promise.all([1, 2].map((body) => channel.basicPublish(queue, { body })));

  await publishTwo();
  await channel.txRollback();
  assert.equal(await depth(rabbit, queue), 0);
  await publishTwo();
  assert.equal(await depth(rabbit, queue), 0);
  await channel.txCommit();
  assert.equal(await depth(rabbit, queue), 2);

  channel.basicAck(await channel.basicGet(queue));
  await channel.txCommit();
  await channel.basicGet(queue); // and is never acknowledged
  await channel.close();
  const message = await rabbit.basicGet({ queue, noAck: true });
  assert.deepEqual([message.body, message.redelivered], [{ body: 2 }, true]);
  assert.equal(await depth(rabbit, queue), 0);
  await rabbit.close();
}

async function rpc() {
  const rabbit = await open();
  const server = rabbit.createConsumer({ queueOptions: { exclusive: true } }, async (request, reply) => {
    assert.match(request.replyTo, /^amq\.rabbitmq\.reply-to\./);
    await reply(`answer to ${request.body}`);
  });
  await event(server, 'ready');
  const client = rabbit.createRPCClient({ confirm: true });
  const requests = Array.from({ length: 100 }, (_, i) => client.send(server.queue, `request ${i}`));
  const answers = (await Promise.all(requests)).map((answer) => answer.body);
  assert.deepEqual(answers, Array.from({ length: 100 }, (_, i) => `answer to request ${i}`));
  await client.close();
  await server.close();
  await rabbit.close();
}

async function large(channel) {
  const { queue } = await channel.queueDeclare({ exclusive: true });
  await channel.basicPublish(queue, LARGE);
  const { body } = await channel.basicGet({ queue, noAck: true });
  assert.ok(body.equals(LARGE));
}

async function cancel(channel, rabbit) {
  const queue = unique();
  const received = [];
  const consumer = rabbit.createConsumer({ queue, queueOptions: { durable: true } }, async (message) => {
    received.push(message.body);
  });
  await event(consumer, 'ready');
  const cancelled = event(consumer, 'error');
  const again = event(consumer, 'ready');
  await channel.queueDelete(queue);
  assert.equal((await cancelled).code, 'CANCEL_FORCED');

  await again; // the client declares the queue and consumes it again
  await channel.basicPublish(queue, 'more');
  assert.deepEqual(await take(received, 1), ['more']);
  await consumer.close();
  await channel.queueDelete(queue);
}

async function restart() {
  const [exchange, queue] = [unique(), unique()];
  const rabbit = new Connection(PLAIN);
  rabbit.on('error', () => {}); // while there is no broker
  const received = [];
  let release;
  const released = new Promise((resolve) => { release = resolve; });
  const consumer = rabbit.createConsumer({
    queue, queueOptions: { durable: true }, exchanges: [{ exchange, durable: true }],
    queueBindings: [{ queue, exchange, routingKey: 'key' }], qos: { prefetchCount: 1 },
  }, async (message) => {
    received.push(message);
    await released;
  });
  consumer.on('error', () => {}); // what the handler kept cannot be acknowledged any more
  await event(consumer, 'ready');

  // The consumer keeps the first message and so does not get the second one.
  const publisher = rabbit.createPublisher({ confirm: true, maxAttempts: 3 });
  const toKey = { exchange, routingKey: 'key', durable: true };
  for (const body of ['kept', 'waiting']) await publisher.send(toKey, body);
  await take(received, 1);
  assert.equal(await depth(rabbit, queue), 1);
  const recovered = event(consumer, 'ready');
  await restartBroker();
  release();
  await recovered;

  await publisher.send(toKey, 'new');
  const messages = (await take(received, 3)).map(({ body, redelivered }) => [body, redelivered]);
  assert.deepEqual(messages, [['kept', true], ['waiting', true], ['new', false]]);
  await consumer.close();
  await publisher.close();
  await rabbit.queueDelete(queue);
  await rabbit.exchangeDelete({ exchange });
  await rabbit.close();
}

async function errors() {
  const rabbit = await open();
  const queue = unique();
  const owned = { queue, exclusive: true, arguments: { 'x-message-ttl': 1000 } };
  await rabbit.queueDeclare(owned);

  /** The steps are refused so, and only their channel is closed: the connection makes the next one. */
  const refused = async (on, method, [, code, reason], steps) => {
    const channel = await on.acquire();
    await channel.confirmSelect();
    const message = `${method}: ${code} - ${reason}`;
    await assert.rejects(steps(channel), { name: 'AMQPChannelError', code, message });
    assert.equal(channel.active, false);
    assert.ok(on.ready);
  };
  const absent = unique();
  await refused(rabbit, 'QueueDeclare', ERRORS.missing(absent), (channel) => depth(channel, absent));
  await refused(rabbit, 'QueueDeclare', ERRORS.inequivalent(queue),
    (channel) => channel.queueDeclare({ ...owned, arguments: { 'x-message-ttl': 2000 } }));
  await refused(rabbit, 'BasicPublish', ERRORS.expiration(),
    (channel) => channel.basicPublish({ routingKey: queue, expiration: 'abc' }, ''));
  const stranger = await open();
  await refused(stranger, 'QueueDeclare', ERRORS.locked(queue), (channel) => depth(channel, queue));
  for (const living of [stranger, rabbit]) {
    await (await living.acquire()).close();
    await living.close();
  }

  const refusedLogin = async (method, [, code, reason], options) => {
    const connection = new Connection({ ...PLAIN, ...options });
    const error = await event(connection, 'error');
    assert.deepEqual([error.name, error.code], ['AMQPConnectionError', code]);
    assert.equal(error.message, `${method}: ${code} - ${reason}`);
    await connection.close();
  };
  await refusedLogin('undefined', /* it is no method that is refused */ ERRORS.password(), { password: 'wrong' });
  await refusedLogin('ConnectionOpen', ERRORS.vhost(), { vhost: 'nope' });
}

run(version('rabbitmq-client'), {
  connect, tls, confirms: confirmed(confirms), prefetch: confirmed(prefetch), 'queue-ttl': confirmed(queueTtl),
  'message-ttl': confirmed(messageTtl), priorities: confirmed(priorities), transactions, rpc, large: confirmed(large),
  'dead-letter': confirmed(async (channel, rabbit) => {
    await deadLetter(channel);
    await retry(channel, rabbit);
  }),
  cancel: confirmed(cancel), restart, errors,
});
