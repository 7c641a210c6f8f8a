// Where everything starts: what is imported from here is all there is, so that nothing is left to be loaded later.

import "../vendor/uplot.js";
import { get, path } from "./api.js";
import { follow as followBroker } from "./away.js";
import { listen as listenToFaults } from "./errors.js";
import { html, render } from "./html.js";
import { listen as listenToKeys } from "./keys.js";
import { App } from "./layout.js";
import { follow } from "./router.js";
import { ROUTES } from "./routes.js";
import { watch as watchVersion } from "./version.js";

listenToFaults();
listenToKeys();
follow(ROUTES);
followBroker(() => get(path("whoami")));
watchVersion();

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
