'use strict';
// What every program of this folder does around its scenarios.

const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const readline = require('node:readline');
const { setTimeout: sleep } = require('node:timers/promises');

const HOST = process.env.AMQP_HOST;
const PORT = Number(process.env.AMQP_PORT);
const TLS_PORT = Number(process.env.AMQPS_PORT);

const WITHIN_MS = 60000;
const EXPIRES_MS = 300;
const LARGE = Buffer.alloc(20_000_000, Buffer.from(Array.from({ length: 250 }, (_, octet) => octet)));

/** The client does not offer what a scenario needs. */
class Without extends Error {}

/** The certificate that the broker's is signed with. */
const authority = () => fs.readFileSync(process.env.CA_FILE);

/** A name that nobody else uses. */
const unique = () => `interop-${randomBytes(6).toString('hex')}`;

/** Wait until it holds. */
async function eventually(holds, what, everyMs = 10) {
  const deadline = Date.now() + WITHIN_MS;
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, `not within ${WITHIN_MS} ms: ${what}`);
    await sleep(everyMs);
  }
}

/** What an event tells when it comes; errors before it are somebody else's. */
function event(emitter, name) {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`not within ${WITHIN_MS} ms: the event ${name}`)), WITHIN_MS);
    emitter.once(name, (told) => {
      clearTimeout(late);
      resolve(told);
    });
  });
}

/** Wait until a consumer has collected as many messages, and take them. */
async function take(received, count) {
  await eventually(() => received.length >= count, `${count} messages; there are ${received.length}`);
  return received.splice(0, count);
}

/** Wait until a queue that expires is gone. Asking for it counts as a use, so that it is asked for rarely. */
async function expires(gone) {
  await sleep(EXPIRES_MS);
  await eventually(gone, 'the queue is gone', 2 * EXPIRES_MS);
}

/** What every table of `x-death` has; the client says how many seconds its timestamp is. */
function checkDeath(death, expected, seconds) {
  const { time, ...rest } = death;
  assert.deepEqual(rest, expected);
  assert.ok(Number.isInteger(seconds(time)), `time is ${JSON.stringify(time)}`);
  assert.ok(Math.abs(seconds(time) - Date.now() / 1000) < 60, `time is ${seconds(time)}`);
}

/** The headers of a message that died once, in a queue that it got into through an exchange. */
function checkDied(headers, reason, queue, exchange, seconds, more = {}) {
  assert.equal(headers['x-death'].length, 1);
  checkDeath(headers['x-death'][0], { count: 1, reason, queue, exchange, 'routing-keys': [queue], ...more }, seconds);
  assert.equal(headers['x-first-death-reason'], reason);
  assert.equal(headers['x-first-death-queue'], queue);
  assert.equal(headers['x-first-death-exchange'], exchange);
}

/** The headers of a message that was rejected from a work queue and expired in a wait queue twice. */
function checkRetried(headers, work, wait, seconds) {
  const [expired, rejected, ...others] = headers['x-death'];
  const common = { count: 2, exchange: '' };
  checkDeath(expired, { ...common, reason: 'expired', queue: wait, 'routing-keys': [wait] }, seconds);
  checkDeath(rejected, { ...common, reason: 'rejected', queue: work, 'routing-keys': [work] }, seconds);
  assert.deepEqual(others, []);
}

/** What brokers say, and under which code. */
const ERRORS = {
  missing: (queue) => [404, 'NOT_FOUND', `no queue '${queue}' in vhost '/'`],
  inequivalent: (queue) => [
    406, 'PRECONDITION_FAILED',
    `inequivalent arg 'x-message-ttl' for queue '${queue}' in vhost '/': received '2000' but current is '1000'`],
  expiration: () => [406, 'PRECONDITION_FAILED', "invalid expiration 'abc': no_integer"],
  locked: (queue) => [
    405, 'RESOURCE_LOCKED',
    `cannot obtain exclusive access to locked queue '${queue}' in vhost '/'. It could be originally declared on ` +
    'another connection or the exclusive property value does not match that of the original declaration.'],
  password: () => [
    403, 'ACCESS_REFUSED',
    'Login was refused using authentication mechanism PLAIN. For details see the broker logfile.'],
  vhost: () => [530, 'NOT_ALLOWED', 'vhost nope not found'],
};

/** The version of an installed package. */
const version = (name) => JSON.parse(fs.readFileSync(path.join(process.env.NODE_PATH, name, 'package.json'))).version;

const input = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Have the broker killed and started again. */
async function restartBroker() {
  console.log('restart');
  assert.equal((await input.next()).value, 'restarted');
}

/** Run the scenarios that the command line names; `scenarios` are functions by name. */
async function run(version, scenarios) {
  console.log(`version ${version}`);
  let failed = false;
  for (const name of process.argv.slice(2)) {
    try {
      await scenarios[name]();
      console.log(`ok ${name}`);
    } catch (error) {
      if (error instanceof Without) {
        console.log(`without ${name}: ${error.message}`);
      } else {
        failed = true;
        console.log(error);
        console.log(`failed ${name}: ${error}`.replaceAll('\n', ' '));
      }
    }
  }
  process.exit(failed ? 1 : 0);
}

module.exports = {
  HOST, PORT, TLS_PORT, LARGE, ERRORS, EXPIRES_MS, Without, authority, unique, eventually, event, take, expires,
  checkDied, checkRetried, version, restartBroker, run,
};
