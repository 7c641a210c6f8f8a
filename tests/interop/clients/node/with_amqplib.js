'use strict';
// amqplib, through every scenario; ../../README.md says what each does.

const assert = require('node:assert/strict');
const amqp = require('amqplib');

const {
  HOST, PORT, TLS_PORT, LARGE, ERRORS, EXPIRES_MS, Without, authority, unique, eventually, event, take, expires,
  checkDied, checkRetried, version, restartBroker, run,
} = require('./runner.js');

const PLAIN = { protocol: 'amqp', hostname: HOST, port: PORT };
const TLS = { protocol: 'amqps', hostname: HOST, port: TLS_PORT };

const text = (message) => message.content.toString();
const seconds = (time) => (time['!'] === 'timestamp' ? time.value : undefined);
const depth = async (channel, queue) => (await channel.checkQueue(queue)).messageCount;

/** A connection. Errors that no promise tells are events, and do not end the program. */
async function open(url = PLAIN, options = {}) {
  const connection = await amqp.connect(url, options);
  connection.on('error', (error) => console.log('connection:', error));
  return connection;
}

/** A scenario on a connection with a channel for confirmed messages, closed in order. */
function confirmed(steps) {
  return async () => {
    const connection = await open();
    const channel = await connection.createConfirmChannel();
    channel.on('error', (error) => console.log('channel:', error));
    await steps(channel, connection);
    await channel.close();
    await connection.close();
  };
}

async function propertiesComeBack(connection) {
  const channel = await connection.createChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true });
  assert.match(queue, /^amq\.gen-/);
  const properties = {
    contentType: 'text/plain',
    headers: {
      text: 'Häsin', number: 70_000, large: 2 ** 40, fraction: 0.5, flag: true, nothing: null,
      at: { '!': 'timestamp', value: 1_700_000_000 },
      nested: { deep: { list: [1, 'two', false, { three: 3 }] } },
      list: ['a', -1, ['b']],
    },
    deliveryMode: 2, correlationId: 'correlation', messageId: 'message', timestamp: 1_700_000_001, type: 'greeting',
  };
  channel.sendToQueue(queue, Buffer.from('hello'), properties);
  const message = await channel.get(queue, { noAck: true });
  assert.equal(text(message), 'hello');
  const present = Object.entries(message.properties).filter(([, value]) => value !== undefined);
  assert.deepEqual(Object.fromEntries(present), properties);
  assert.equal(await channel.get(queue), false);
  await channel.close();
  await connection.close();
}

async function connect() {
  await propertiesComeBack(await open());
}

async function tls() {
  await assert.rejects(amqp.connect(TLS), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' });
  await propertiesComeBack(await open(TLS, { ca: [authority()] }));
}

async function confirms(channel) {
  const queue = unique();
  await channel.assertQueue(queue, { durable: true });
  let count = 0;
  for (let i = 0; i < 1000; i++) {
    channel.sendToQueue(queue, Buffer.from(`${i}`), { persistent: true }, (error) => { count += error ? 0 : 1; });
  }
  await channel.waitForConfirms();
  assert.equal(count, 1000);
  assert.equal(await depth(channel, queue), 1000);
  await channel.deleteQueue(queue);

  const returned = event(channel, 'return');
  channel.publish('', queue, Buffer.from('nowhere'), { mandatory: true });
  await channel.waitForConfirms();
  const message = await returned;
  assert.deepEqual([message.fields.replyCode, message.fields.replyText], [312, 'NO_ROUTE']);
  assert.equal(text(message), 'nowhere');

  await channel.assertQueue(queue, { exclusive: true, maxLength: 1, overflow: 'reject-publish' });
  channel.sendToQueue(queue, Buffer.from('taken'));
  await channel.waitForConfirms();
  channel.sendToQueue(queue, Buffer.from('refused'));
  await assert.rejects(channel.waitForConfirms(), { message: 'message nacked' });
}

async function prefetch(channel, connection) {
  const queue = unique();
  await channel.assertQueue(queue);
  for (let i = 0; i < 100; i++) channel.sendToQueue(queue, Buffer.from(`${i}`));
  await channel.waitForConfirms();

  const consumer = await connection.createChannel();
  await consumer.prefetch(10);
  const received = [];
  await consumer.consume(queue, (message) => received.push(message));
  const bodies = [];
  for (let ready = 90; ready >= 0; ready -= 10) {
    const messages = await take(received, 10);
    assert.equal(await depth(consumer, queue), ready);
    assert.equal(received.length, 0);
    bodies.push(...messages.map(text));
    for (const message of messages.slice(0, 5)) consumer.ack(message);
    consumer.ack(messages[9], true);
  }
  assert.deepEqual(bodies, Array.from({ length: 100 }, (_, i) => `${i}`));

  channel.sendToQueue(queue, Buffer.from('again'));
  const [sentBack] = await take(received, 1);
  assert.equal(sentBack.fields.redelivered, false);
  consumer.nack(sentBack, false, true);
  const [again] = await take(received, 1);
  assert.equal(text(again), 'again');
  assert.equal(again.fields.redelivered, true);
  consumer.reject(again, false);
  await consumer.close();
  assert.equal(received.length, 0);
  assert.equal(await depth(channel, queue), 0);
  await channel.deleteQueue(queue);
}

async function queueTtl(channel, connection) {
  const queue = unique();
  await channel.assertQueue(queue, { messageTtl: 1000 });
  for (let i = 0; i < 3; i++) channel.sendToQueue(queue, Buffer.from(`${i}`));
  await channel.waitForConfirms();
  assert.equal(await depth(channel, queue), 3);
  await eventually(async () => (await depth(channel, queue)) === 0, 'three messages expire');
  await channel.deleteQueue(queue);

  await channel.assertQueue(queue, { expires: EXPIRES_MS });
  await expires(async () => {
    const asking = await connection.createChannel();
    asking.on('error', () => {});
    return asking.checkQueue(queue).then(() => asking.close().then(() => false), (error) => error.code === 404);
  });
}

async function messageTtl(channel) {
  const { queue } = await channel.assertQueue('', { exclusive: true });
  channel.sendToQueue(queue, Buffer.from('first'), { expiration: '1000' });
  channel.sendToQueue(queue, Buffer.from('second'), { expiration: '60000' });
  await channel.waitForConfirms();
  assert.equal(await depth(channel, queue), 2);
  await eventually(async () => (await depth(channel, queue)) === 1, 'the first message expires');
  const second = await channel.get(queue, { noAck: true });
  assert.equal(text(second), 'second');
  assert.equal(second.properties.expiration, '60000');

  channel.sendToQueue(queue, Buffer.from('never'), { expiration: '0' });
  await channel.waitForConfirms();
  assert.equal(await channel.get(queue), false);
}

async function deadLetter(channel) {
  const [exchange, work, short, dead] = [unique(), unique(), unique(), unique()];
  const toDead = { exclusive: true, deadLetterExchange: exchange, deadLetterRoutingKey: dead };
  await channel.assertExchange(exchange, 'direct', { autoDelete: true });
  await channel.assertQueue(dead, { exclusive: true });
  await channel.assertQueue(work, toDead);
  await channel.assertQueue(short, { ...toDead, maxLength: 1 });
  for (const queue of [dead, work, short]) await channel.bindQueue(queue, exchange, queue);
  const received = [];
  await channel.consume(dead, (message) => received.push(message), { noAck: true });

  channel.publish(exchange, work, Buffer.from('expires'), { expiration: '100' });
  const [expired] = await take(received, 1);
  assert.equal(text(expired), 'expires');
  assert.equal(expired.properties.expiration, undefined);
  checkDied(expired.properties.headers, 'expired', work, exchange, seconds, { 'original-expiration': '100' });

  channel.publish(exchange, work, Buffer.from('refused'));
  channel.reject(await channel.get(work), false);
  const [rejected] = await take(received, 1);
  assert.equal(text(rejected), 'refused');
  checkDied(rejected.properties.headers, 'rejected', work, exchange, seconds);

  channel.publish(exchange, short, Buffer.from('pushed out'));
  channel.publish(exchange, short, Buffer.from('stays'));
  const [dropped] = await take(received, 1);
  assert.equal(text(dropped), 'pushed out');
  checkDied(dropped.properties.headers, 'maxlen', short, exchange, seconds);

  await retry(channel);
}

async function retry(channel) {
  const [work, wait] = [unique(), unique()];
  await channel.assertQueue(work, { exclusive: true, deadLetterExchange: '', deadLetterRoutingKey: wait });
  await channel.assertQueue(wait, {
    exclusive: true, messageTtl: 100, deadLetterExchange: '', deadLetterRoutingKey: work });
  const received = [];
  await channel.consume(work, (message) => received.push(message));
  channel.sendToQueue(work, Buffer.from('try'));
  for (let i = 0; i < 2; i++) channel.nack((await take(received, 1))[0], false, false);
  const [third] = await take(received, 1);
  checkRetried(third.properties.headers, work, wait, seconds);
  channel.ack(third);
}

async function priorities(channel) {
  const { queue } = await channel.assertQueue('', { exclusive: true, maxPriority: 5 });
  for (const priority of [1, 5, 3, undefined]) channel.sendToQueue(queue, Buffer.from(`${priority}`), { priority });
  await channel.waitForConfirms();
  for (const priority of [5, 3, 1, undefined]) {
    const message = await channel.get(queue, { noAck: true });
    assert.equal(text(message), `${priority}`);
    assert.equal(message.properties.priority, priority);
  }
}

async function transactions() {
  throw new Without('the client has no transactions');
}

async function rpc(channel, connection) {
  const server = await connection.createChannel();
  const { queue } = await server.assertQueue('', { exclusive: true });
  await server.consume(queue, (request) => {
    const { replyTo, correlationId } = request.properties;
    server.sendToQueue(replyTo, Buffer.from(`answer to ${text(request)}`), { correlationId });
    server.ack(request);
  });

  const answers = new Map();
  await channel.consume('amq.rabbitmq.reply-to', (answer) => {
    answers.set(answer.properties.correlationId, text(answer));
  }, { noAck: true });
  for (let i = 0; i < 100; i++) {
    const properties = { replyTo: 'amq.rabbitmq.reply-to', correlationId: `id-${i}` };
    channel.sendToQueue(queue, Buffer.from(`request ${i}`), properties);
  }
  await eventually(() => answers.size === 100, '100 answers');
  for (let i = 0; i < 100; i++) assert.equal(answers.get(`id-${i}`), `answer to request ${i}`);
}

async function large(channel) {
  const { queue } = await channel.assertQueue('', { exclusive: true });
  channel.sendToQueue(queue, LARGE);
  await channel.waitForConfirms();
  const message = await channel.get(queue, { noAck: true });
  assert.ok(message.content.equals(LARGE));
}

async function cancel(channel, connection) {
  const { queue } = await channel.assertQueue('', { exclusive: true });
  const received = [];
  await channel.consume(queue, (message) => received.push(message));
  const other = await connection.createChannel();
  await other.deleteQueue(queue);
  const [cancelled] = await take(received, 1);
  assert.equal(cancelled, null); // which is how the client says it
}

/** Who closes the connection when a consumer is cancelled still gets the answer to the deletion. */
async function deletionIsAnsweredFirst() {
  const connection = await open();
  const channel = await connection.createChannel();
  const { queue } = await channel.assertQueue(unique(), { durable: true });
  const closed = new Promise((resolve) => connection.once('close', resolve));
  await channel.consume(queue, (message) => message === null && connection.close());
  assert.equal((await channel.deleteQueue(queue)).messageCount, 0);
  await closed;
}

async function restart() {
  const [exchange, queue] = [unique(), unique()];
  let channel;
  let received;
  const setup = async (connection) => {
    channel = await connection.createConfirmChannel();
    await channel.assertExchange(exchange, 'direct', { durable: true });
    await channel.assertQueue(queue, { durable: true });
    await channel.bindQueue(queue, exchange, 'key');
    await channel.prefetch(1);
    received = [];
    await channel.consume(queue, (message) => received.push(message));
  };
  const connection = await open(PLAIN, { recovery: { initialDelay: 50, maxDelay: 200, setup } });

  // The consumer keeps the first message and so does not get the second one.
  for (const body of ['kept', 'waiting']) channel.publish(exchange, 'key', Buffer.from(body), { persistent: true });
  await channel.waitForConfirms();
  await take(received, 1);
  assert.equal(await depth(channel, queue), 1);
  const connected = event(connection, 'connect');
  await restartBroker();
  await connected;

  channel.publish(exchange, 'key', Buffer.from('new'), { persistent: true });
  await channel.waitForConfirms();
  for (const [body, redelivered] of [['kept', true], ['waiting', true], ['new', false]]) {
    const [message] = await take(received, 1);
    assert.equal(text(message), body);
    assert.equal(message.fields.redelivered, redelivered);
    channel.ack(message);
  }
  await channel.deleteQueue(queue);
  await channel.deleteExchange(exchange);
  await connection.close();
}

async function errors() {
  const connection = await open();
  const queue = unique();
  const owner = await connection.createChannel();
  await owner.assertQueue(queue, { exclusive: true, messageTtl: 1000 });

  /** The steps are refused so, and only their channel is closed: the connection makes the next one. */
  const refused = async (on, [code, name, reason], steps) => {
    const channel = await on.createConfirmChannel();
    const told = event(channel, 'error');
    const closed = event(channel, 'close');
    await assert.rejects(steps(channel));
    const error = await told;
    assert.equal(error.code, code);
    assert.ok(error.message.endsWith(`with message "${name} - ${reason}"`), error.message);
    await closed;
  };
  const missing = unique();
  await refused(connection, ERRORS.missing(missing), (channel) => channel.checkQueue(missing));
  await refused(connection, ERRORS.inequivalent(queue),
    (channel) => channel.assertQueue(queue, { exclusive: true, messageTtl: 2000 }));
  await refused(connection, ERRORS.expiration(), (channel) => {
    channel.sendToQueue(queue, Buffer.from(''), { expiration: 'abc' });
    return channel.waitForConfirms();
  });
  const stranger = await open();
  await refused(stranger, ERRORS.locked(queue), (channel) => channel.checkQueue(queue));
  for (const living of [stranger, connection]) {
    await living.createChannel();
    await living.close();
  }

  const [code, name, reason] = ERRORS.password();
  await assert.rejects(amqp.connect({ ...PLAIN, username: 'guest', password: 'wrong' }), {
    message: `Handshake terminated by server: ${code} (ACCESS-REFUSED) with message "${name} - ${reason}"` });
  // The client does not tell which code and text the broker gives for a missing vhost.
  await assert.rejects(amqp.connect({ ...PLAIN, vhost: 'nope' }), {
    message: 'Expected ConnectionOpenOk; got <ConnectionClose channel:0>' });
}

run(version('amqplib'), {
  connect, tls, confirms: confirmed(confirms), prefetch: confirmed(prefetch), 'queue-ttl': confirmed(queueTtl),
  'message-ttl': confirmed(messageTtl), 'dead-letter': confirmed(deadLetter), priorities: confirmed(priorities),
  transactions, rpc: confirmed(rpc), large: confirmed(large), cancel: confirmed(cancel), restart, errors,
  'delete-own': deletionIsAnsweredFirst,
});
