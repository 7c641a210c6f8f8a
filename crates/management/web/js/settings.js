// Choices of the user, kept in this browser.

import { stored } from "./store.js";

/** How often lists are asked for again, in milliseconds; 0 for never. */
export const refreshMs = stored("leveret.refreshMs", 5000);

/** What `refreshMs` can be. */
export const REFRESH_CHOICES = [[1000, "every second"], [5000, "every 5 s"], [10_000, "every 10 s"], [30_000, "every 30 s"], [0, "never"]];

/** `auto`, `light` or `dark`. */
export const theme = stored("leveret.theme", "auto");

theme.subscribe(() => {
  const chosen = theme.get();
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
});
