// Columns that several lists have.

import { DASH, bytes, byteRate, number, percent, rateOf } from "../format.js";
import { html } from "../html.js";

/** The value at a path of names in an object. */
export const at = (row, names) => names.split(".").reduce((value, name) => value?.[name], row);

/** A column of numbers: zero is faint, so that the rest is seen. */
export const numberColumn = (key, title, field, rest = {}) => ({
  key,
  title,
  sort: field,
  align: "right",
  width: "3.4rem",
  render: (row) => faint(at(row, field), number),
  ...rest,
});

/** A column of bytes. */
export const bytesColumn = (key, title, field, rest = {}) => ({
  ...numberColumn(key, title, field),
  width: "3.4rem",
  render: (row) => faint(at(row, field), bytes),
  ...rest,
});

/** A column of shares, in per cent. */
export const percentColumn = (key, title, field, rest = {}) => ({
  ...numberColumn(key, title, field),
  render: (row) => faint(at(row, field), percent),
  ...rest,
});

/** A column of bytes per second. */
export const byteRateColumn = (key, title, field, rest = {}) => ({
  ...numberColumn(key, title, `${field}_details.rate`),
  width: "3.4rem",
  render: (row) => faint(at(row, `${field}_details.rate`), byteRate),
  ...rest,
});

/** A column of rates: `field` is the number whose `..._details` has it. */
export const rateColumn = (key, title, field, rest = {}) => ({
  key,
  title,
  sort: `${field}_details.rate`,
  align: "right",
  width: "3.4rem",
  render: (row) => {
    const details = at(row, `${field}_details`);
    return details?.rate === 0 ? html`<span class="zero">0/s</span>` : rateOf(details);
  },
  ...rest,
});

/** The buttons of a row. They stay at the right edge of the list, however wide its other columns are. */
export const actionsColumn = (render) => ({
  key: "actions", title: "", name: "Actions", width: "6rem", isPinned: true, render: (row) => html`<span class="row-actions">${render(row)}</span>`,
});

const KINDS = { number: numberColumn, bytes: bytesColumn, share: percentColumn, rate: rateColumn };

/** A column of the broker's table of fields (queue-numbers.js). */
export const columnOf = ({ key, title, field, as, ...rest }) => KINDS[as](key, title, field, rest);

function faint(value, format) {
  if (value === undefined || value === null) return html`<span class="zero">${DASH}</span>`;
  return value === 0 ? html`<span class="zero">0</span>` : format(value);
}
