// Where everything starts.

import { listen as listenToFaults } from "./errors.js";
import { html, render } from "./html.js";
import { listen as listenToKeys } from "./keys.js";
import { App } from "./layout.js";
import { follow } from "./router.js";

listenToFaults();
listenToKeys();
follow();

// A menu closes on a click elsewhere and on Escape.
const closeMenus = (except) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(except)) menu.open = false;
  }
};
document.addEventListener("click", (event) => closeMenus(event.target));
document.addEventListener("keydown", (event) => event.key === "Escape" && closeMenus(null));

const page = document.getElementById("page");
page.replaceChildren();
render(html`<${App} />`, page);
