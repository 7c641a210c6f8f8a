'use strict';
// rabbitmq-client and its own reconnection: publishes numbered messages with confirms, and consumes them. ../foreign.py
// says how.

const fs = require('node:fs');
const readline = require('node:readline');
const { Connection } = require('rabbitmq-client');

const PERIOD_MS = 30;
const ANSWER_MS = 10_000;

const queue = process.argv[2];
const say = (word, number = '') => process.stdout.write(`${word} ${number}\n`);
const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

function connect() {
  const rabbit = new Connection({
    hosts: process.env.NODES.split(','), username: 'guest', password: 'guest', heartbeat: 5, retryLow: 100,
    retryHigh: 500, connectionTimeout: ANSWER_MS, acquireTimeout: ANSWER_MS,
    tls: { ca: [fs.readFileSync(process.env.CA_FILE)] },
  });
  rabbit.on('error', () => {}); // lost connections are what this is about
  return rabbit;
}

let stopped = false;

async function publish() {
  const publisher = connect().createPublisher({ confirm: true, maxAttempts: 1 });
  for (let number = 0; !stopped; number += 1) {
    say('sent', number);
    for (;;) {
      try {
        await publisher.send({ routingKey: queue, durable: true }, `${number}`);
        break;
      } catch {
        await pause(100);
      }
    }
    say('confirmed', number);
    await pause(PERIOD_MS);
  }
  say('done');
}

const consumer = connect().createConsumer({
  queue, queueOptions: { durable: true }, qos: { prefetchCount: 20 },
}, async (message) => {
  say('got', message.body);
});
consumer.on('error', (error) => say('lost', error.message)); // what is not acknowledged comes again

readline.createInterface({ input: process.stdin })
  .on('line', (line) => { stopped ||= line === 'stop'; })
  .on('close', () => process.exit(0));
publish();
