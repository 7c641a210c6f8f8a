// The three pages about dead letters.

import { Tabs } from "../../components.js";
import { html } from "../../html.js";
import { href } from "../../router.js";

/** The tabs. */
export const Parts = ({ current }) => html`<${Tabs} current=${current} items=${[
  ["map", "Map", href("dead-letters")],
  ["queues", "Dead-letter queues", href("dead-letters", "queues")],
  ["history", "History", href("dead-letters", "history")],
]} />`;
