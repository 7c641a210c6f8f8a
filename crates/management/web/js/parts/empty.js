// The sentence in an empty list: what is not there, and what brings it there.

import { html } from "../html.js";
import { DocsLink } from "./help.js";

/** What is missing, further words (`children`), and a page of the documentation that shows how it begins. */
export const Empty = ({ text, docs, title, children }) => html`<span class="empty-list" data-test="empty-list">${text} ${children}${children && " "}<${DocsLink} docs=${docs}>${title}<//></span>`;

const FIRST = { docs: "start/first-messages", title: "First messages" };

export const NO_QUEUE = html`<${Empty} text="No queue yet." ...${FIRST}>Clients declare queues, and so does \u201cAdd a queue\u201d:<//>`;
export const NO_CONNECTION = html`<${Empty} text="No client is connected." ...${FIRST}>How a client connects:<//>`;
export const NO_CHANNEL = html`<${Empty} text="No channel is open." ...${FIRST}>Clients open channels on their connections:<//>`;
export const NO_CONSUMER = html`<${Empty} text="No consumer." ...${FIRST}>Messages wait until a client consumes them:<//>`;
export const NO_DEAD_LETTERS = html`<${Empty} text="No queue gets dead letters." docs="concepts/dead-lettering#settings" title="Dead-letter settings">A dead-letter exchange, set by a policy or an argument, keeps messages that die:<//>`;
export const NO_ROUTE = html`<${Empty} text="No queue has a dead-letter exchange: messages that die are dropped." docs="concepts/dead-lettering#settings" title="Dead-letter settings" />`;
export const NO_REDRIVE = html`<${Empty} text="No redrives since the broker started." docs="guides/redrive-dead-letters" title="Redrive dead letters">One begins in the list of dead-letter queues:<//>`;
export const NO_SCHEDULE = html`<${Empty} text="No message waits for its delivery time." docs="guides/deliver-later" title="Deliver later">Publishers set a delay or a time:<//>`;
export const NO_DEATH = html`<${Empty} text="No message has died." docs="concepts/dead-lettering#four-reasons" title="Why messages die" />`;
export const NO_BINDING = html`<${Empty} text="No bindings." docs="concepts/exchanges#types" title="How exchanges route">A binding routes messages of an exchange to a queue or to another exchange:<//>`;
export const NO_LIMIT = html`<${Empty} text="No limits: everything is allowed." docs="reference/users#limits" title="Limits" />`;
export const noPolicy = (vhost) => html`<${Empty} text=${vhost ? `None in ${vhost}.` : "None."} docs="concepts/policies#choice-of-the-policy" title="Policies">A policy gives settings to queues and exchanges by their names:<//>`;
