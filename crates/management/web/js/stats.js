// Tiles in rows of equal length, as far as that is possible.

import { html, useLayoutEffect, useRef } from "./html.js";

const TILE_REM = 7.2;
const TILE_PHONE_REM = 6.4;
const GAP_REM = 0.7;

/** How many of `tiles` are in each row, where `most` have room in one: 10 where 9 have room are 5 and 5. */
export function rowsOf(tiles, most) {
  const rows = Math.max(1, Math.ceil(tiles / Math.max(1, most)));
  const short = Math.floor(tiles / rows);
  return Array.from({ length: rows }, (_, index) => short + (index < tiles % rows ? 1 : 0));
}

/** Large numbers with their names: a row of `Stat`. */
export function Stats({ children }) {
  const box = useRef(null);
  useLayoutEffect(() => {
    const place = () => {
      const tiles = [...box.current.children];
      const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
      const width = box.current.clientWidth / rem;
      const tile = width < 30 ? TILE_PHONE_REM : TILE_REM;
      const rows = rowsOf(tiles.length, Math.floor((width + GAP_REM) / (tile + GAP_REM)));
      const [long, short] = [rows[0], rows.at(-1)];
      // Columns of the grid that rows of both lengths can be made of.
      const columns = long === short ? long : long * short;
      box.current.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
      let at = 0;
      for (const length of rows) {
        for (const one of tiles.slice(at, at + length)) one.style.gridColumn = `span ${columns / length}`;
        at += length;
      }
    };
    const observer = new ResizeObserver(place);
    observer.observe(box.current);
    const changes = new MutationObserver(place);
    changes.observe(box.current, { childList: true });
    place();
    return () => {
      observer.disconnect();
      changes.disconnect();
    };
  }, []);
  return html`<div class="stats" ref=${box}>${children}</div>`;
}
