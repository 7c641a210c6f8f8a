// The dead-letter map as a picture. Every node is a link, so that Tab leads through it.

import { compact, count, noun } from "../../format.js";
import { classes, html, useLayoutEffect, useMemo, useRef, useState } from "../../html.js";
import { bySeverity, kindName, sign } from "../../parts/warnings.js";
import { href, hrefWith } from "../../router.js";
import { reach } from "./graph.js";
import { curve, fitting, keyOf, layOut, shapeOf } from "./layout.js";

const SCALES = [0.3, 0.45, 0.6, 0.8, 1, 1.3, 1.7];
const FIT_MIN = 0.75;
const LETTER = 6.4;
const ENDS = { nowhere: "\u2716 no queue", anywhere: "depends on the key" };

/** The picture of `graph`, as `graphOf` makes it. */
export function Picture({ graph }) {
  const box = useRef(null);
  const [room, setRoom] = useState(0);
  const [scale, setScale] = useState(null);
  const [at, setAt] = useState(null);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setRoom(Math.floor(entry.contentRect.width)));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const shape = shapeOf(graph);
  const laid = useMemo(() => (room > 0 ? layOut(graph, Math.max(room, 600)) : null), [shape, room]);
  const near = useMemo(() => (at === null ? null : reach(graph, at)), [shape, at]);
  const fit = laid ? Math.max(FIT_MIN, Math.min(1, room / laid.width)) : 1;
  const size = scale ?? fit;
  const zoom = (step) => {
    const steps = step > 0 ? SCALES : [...SCALES].reverse();
    setScale(steps.find((one) => (step > 0 ? one > size + 0.01 : one < size - 0.01)) ?? size);
  };
  const leave = () => setAt(null);
  return html`<div class="picture">
    <div class="picture-tools" role="group" aria-label="Size of the picture">
      <button type="button" onClick=${() => zoom(-1)} aria-label="Smaller">\u2212</button>
      <button type="button" onClick=${() => setScale(null)}>Fit</button>
      <button type="button" onClick=${() => zoom(1)} aria-label="Larger">+</button></div>
    <div class="picture-box" ref=${box} tabindex="0" role="region" aria-label="Dead-letter map" data-test="map">
      ${laid && html`<svg width=${laid.width * size} height=${laid.height * size} viewBox=${`0 0 ${laid.width} ${laid.height}`}
        class=${classes("graph", near && "has-near")}>
        <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0,0L8,4L0,8z" /></marker></defs>
        ${graph.links.map((link) => html`<${Link} key=${link.id} link=${link} place=${laid.links.get(link.id)} isNear=${near?.links.has(link.id)} />`)}
        ${graph.nodes.map((node) => html`<${Node} key=${node.id} node=${node} place=${laid.nodes.get(node.id)} isNear=${near?.nodes.has(node.id)} onAt=${setAt} onLeave=${leave} />`)}
      </svg>`}
    </div>
  </div>`;
}

function Link({ link, place, isNear }) {
  if (!place) return null;
  const { label } = link;
  return html`<g class=${classes("link", !link.isCertain && "is-uncertain", label?.isMoving && "is-moving", isNear && "is-near")}>
    <path d=${curve(place.points)} marker-end="url(#arrow)" />
    ${!link.isCertain && html`<title>Depends on the routing key of each message</title>`}
    ${label?.title && html`<title>${label.title}</title>`}
    ${label && place.x !== null && label.lines.map((line, index) => {
      const y = place.y - (label.lines.length - 1) * 7 + index * 14;
      const width = line.length * LETTER;
      return html`<g key=${index}><rect x=${place.x - width / 2} y=${y - 7} width=${width} height="14" /><text x=${place.x} y=${y + 4}>${line}</text></g>`;
    })}
  </g>`;
}

/** The description of a node for screen readers. */
function spoken({ kind, name, key, text, facts, warnings, names, total, delays = [] }) {
  const figures = facts ? `, ${count(facts.messages, "message")}, ${count(facts.consumers, "consumer")}` : "";
  const what = kind === "group"
    ? `${count(total, "queue")} with the same route${figures}: ${names.join(", ")}${total > names.length ? ` and ${count(total - names.length, "other")}` : ""}`
    : kind === "exchange"
    ? `Exchange ${name} ${keyOf({ key, text })}${facts?.exists === false ? ", which does not exist" : ""}`
    : `Queue ${name}${figures}`;
  return [what, ...delays, ...warnings.map((warning) => warning.text)].join(". ");
}

/** The second line of a queue. */
const figures = (facts) => (facts ? `${compact(facts.messages)} \u2709  ${compact(facts.consumers)} ${noun(facts.consumers, "consumer")}` : "");

function Node({ node, place, isNear, onAt, onLeave }) {
  if (!place) return null;
  const { kind, vhost, name, title = name, facts } = node;
  const { width, height } = place;
  const [left, top] = [place.x - width / 2, place.y - height / 2];
  if (ENDS[kind] || kind === "more") {
    return html`<g class=${classes("node", `is-${kind}`, isNear && "is-near")}><text x=${place.x} y=${place.y + 4} class="middle">${ENDS[kind] ?? name}</text></g>`;
  }
  const worst = bySeverity(node.warnings);
  const isGroup = kind === "group";
  const isQueue = kind === "queue" || isGroup;
  const words = [...new Set(worst.map((warning) => kindName(warning.kind)))].join(", ");
  const isDlq = isQueue && facts?.is_dead_letter_queue;
  const events = { onFocus: () => onAt(node.id), onBlur: onLeave, onMouseEnter: () => onAt(node.id), onMouseLeave: onLeave };
  const to = isGroup ? hrefWith({ view: "table", name: node.filter ?? (node.way[0] || name) }, "dead-letters") : href(isQueue ? "queues" : "exchanges", vhost, name);
  return html`<a href=${to} aria-label=${spoken(node)} ...${events}
    class=${classes("node", `is-${kind}`, isDlq && "is-dlq", worst.length > 0 && `has-${worst[0].severity}`, isNear && "is-near")} data-test=${`node-${kind}`}>
    <title>${spoken(node)}</title>
    ${isGroup && html`<rect x=${left + 4} y=${top - 4} width=${width - 4} height=${height} rx="5" />`}
    ${isQueue
      ? html`<rect x=${left} y=${top} width=${width} height=${height} rx="5" />`
      : html`<path class="shape" d=${hexagon(left, top, width, height)} />`}
    <text x=${left + 13} y=${top + 20} class="name">${fitting(title, width)}</text>
    <text x=${left + 13} y=${top + 36} class="small">${fitting(isQueue ? figures(facts) : keyOf(node), width, true)}</text>
    ${worst.length > 0 && html`<text x=${left + 13} y=${top + 52} class="warn">${sign(worst[0].severity)} ${fitting(words, width - 14, true)}</text>`}
  </a>`;
}

/** An exchange has corners at its sides, which a queue has not. */
function hexagon(x, y, width, height) {
  const side = 9;
  return `M${x},${y + height / 2}L${x + side},${y}H${x + width - side}L${x + width},${y + height / 2}L${x + width - side},${y + height}H${x + side}z`;
}
