// The login form.

import { get, path } from "./api.js";
import { html, useState } from "./html.js";
import { basic, enter, farewell } from "./session.js";
import { AwayBar } from "./standing.js";
import { useStore } from "./store.js";

/** Shown instead of everything else without a login. */
export function Login() {
  const [user, setUser] = useState("");
  const [password, setPassword] = useState("");
  const [state, setState] = useState({ isBusy: false, text: "" });
  const said = useStore(farewell);
  const submit = async (event) => {
    event.preventDefault();
    setState({ isBusy: true, text: "" });
    const authorization = basic(user, password);
    try {
      enter(authorization, await get(path("whoami"), {}, { authorization }));
    } catch (error) {
      // That the broker is away is said above.
      setState({ isBusy: false, text: error.isAway ? "" : error.message });
    }
  };
  return html`<main class="login">
    <form onSubmit=${submit} data-test="login">
      <img src="img/leveret.svg" alt="" width="56" height="56" />
      <h1>Leveret</h1>
      <${AwayBar} />
      ${said && !state.text && html`<p class="form-error">${said}</p>`}
      <label class="field"><span>User</span>
        <input type="text" name="username" autocomplete="username" autocapitalize="none" spellcheck=${false} required autofocus value=${user} onInput=${(event) => setUser(event.target.value)} data-test="user" /></label>
      <label class="field"><span>Password</span>
        <input type="password" name="password" autocomplete="current-password" value=${password} onInput=${(event) => setPassword(event.target.value)} data-test="password" /></label>
      ${state.text && html`<p class="form-error" role="alert" data-test="login-error">${state.text}</p>`}
      <button type="submit" class="primary" disabled=${state.isBusy} data-test="login-submit">Log in</button>
    </form>
  </main>`;
}
