// Health checks with a parameter.

import { get, path } from "../api.js";
import { Card, State } from "../components.js";
import { ActionForm, NumberField, SelectField, useForm } from "../forms.js";
import { html, useState } from "../html.js";

const KINDS = [["port-listener", "The node listens on port"], ["certificate-expiration", "No certificate expires within"]];
const UNITS = ["days", "weeks", "months", "years"];

/** A form that runs one of them. */
export function OwnCheck() {
  const form = useForm({ kind: "port-listener", value: "", unit: "months" });
  const [result, setResult] = useState(null);
  const { kind, value, unit } = form.values;
  const isPort = kind === "port-listener";
  const run = async () => {
    const names = isPort ? [value] : [value, unit];
    const asked = `${KINDS.find(([key]) => key === kind)[1]} ${names.join(" ")}`;
    try {
      await get(path("health", "checks", kind, ...names));
      setResult({ asked, isGood: true });
    } catch (error) {
      // Other errors are no result of the check.
      if (error.status !== 503) throw error;
      setResult({ asked, isGood: false, reason: error.message });
    }
  };
  return html`<${Card} title="Check a port or certificates" test="own-check">
    <${ActionForm} onSubmit=${run} action="Run check">
      <${SelectField} label="Check" ...${form.bind("kind")} options=${KINDS} />
      <${NumberField} label=${isPort ? "Port" : "Number"} ...${form.bind("value")} required data-test="own-value" />
      ${!isPort && html`<${SelectField} label="Unit" ...${form.bind("unit")} options=${UNITS} />`}
    <//>
    ${result && html`<p class="answer" role="status" data-test="own-result">${result.asked}:
      ${" "}<${State} kind=${result.isGood ? "good" : "danger"}>${result.isGood ? "passed" : "failed"}<//>${result.reason ? ` (${result.reason})` : ""}</p>`}<//>`;
}
