// What a page says of a thing that it cannot show.

import { path } from "../api.js";
import { html } from "../html.js";
import { usePolled } from "../poll.js";
import { isAdministrator } from "../session.js";

/** True if there is nothing to show and nothing to wait for: the thing is not there, or not for this user. */
export const isLost = (polled) => Boolean(polled?.error) && polled.error.status >= 400 && polled.error.status < 500;

/** Of a vhost that cannot be entered, the API says no more than "Not Found"; null if it can be entered. */
const ofVhost = (vhost) => (isAdministrator() ? `The virtual host ${vhost} does not exist (any more).` : `You have no access to virtual host ${vhost}.`);

/** The one sentence: `gone` of a thing that is not there, unless its vhost is the reason. */
export function Lost({ error, gone = "This object does not exist.", vhost }) {
  const isGone = error.status === 404;
  const vhosts = usePolled(isGone && vhost !== undefined ? `${path("vhosts")}?columns=name` : null);
  if (!isGone) return html`<p class="empty" data-test="refused">${error.message}</p>`;
  if (vhosts.isLoading && !vhosts.isAway) return html`<p class="empty" aria-busy="true"></p>`;
  const isOutside = vhosts.data && !vhosts.data.some(({ name }) => name === vhost);
  return html`<p class="empty" data-test="gone"><span class="name">${isOutside ? ofVhost(vhost) : gone}</span></p>`;
}
