<?php

// What Composer would write: Debian's packages have an `autoload.php` each.

require 'PhpAmqpLib/autoload.php';
require 'Symfony/Component/Messenger/autoload.php';
require 'Symfony/Component/Messenger/Bridge/Amqp/autoload.php';
