// The login form.

import { get, isStopped, path } from "./api.js";
import { html, useState } from "./html.js";
import { basic, enter, farewell } from "./session.js";
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
      const text = error.error === "not_authorized" ? "Wrong user name or password." : error.message;
      setState({ isBusy: false, text });
    }
  };
  return html`<main class="login">
    <form onSubmit=${submit} data-test="login">
      <img src="img/leveret.svg" alt="" width="56" height="56" />
      <h1>Leveret</h1>
      <${Stopped} />
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

/** Says that the node is stopped, if it is. */
export function Stopped() {
  return useStore(isStopped) && html`<p class="banner danger" role="alert" data-test="stopped">This node is stopped and serves no clients. Run
    ${" "}<code>leveretctl start_app</code> on its machine to start it.</p>`;
}
