<?php

// php-amqplib, through every scenario; ../../README.md says what each does.

declare(strict_types=1);

require 'PhpAmqpLib/autoload.php';
require __DIR__ . '/runner.php';
require __DIR__ . '/connections.php';
require __DIR__ . '/publishing.php';
require __DIR__ . '/consuming.php';
require __DIR__ . '/expiry.php';
require __DIR__ . '/dead_letters.php';

run(PhpAmqpLib\Package::VERSION, [
    'connect' => connect(...),
    'tls' => tls(...),
    'confirms' => confirms(...),
    'prefetch' => prefetch(...),
    'queue-ttl' => queue_ttl(...),
    'message-ttl' => message_ttl(...),
    'dead-letter' => dead_letter(...),
    'priorities' => priorities(...),
    'transactions' => transactions(...),
    'rpc' => rpc(...),
    'large' => large(...),
    'cancel' => cancel(...),
    'restart' => restart(...),
    'errors' => errors(...),
]);
