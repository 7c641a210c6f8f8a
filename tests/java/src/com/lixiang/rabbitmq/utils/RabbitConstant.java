package com.lixiang.rabbitmq.utils;

public class RabbitConstant {
    public static final String QUEUE_SMS_TTL = "sms.ttl";
}
