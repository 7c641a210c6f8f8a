package com.lixiang.rabbitmq.entity;

import lombok.AllArgsConstructor;
import lombok.Data;

/** A text message to a passenger. */
@Data
@AllArgsConstructor
public class SMS {
    private String name;
    private String mobile;
    private String content;
}
