// Reading what has no room: a scrollbar that is always in sight, texts that a list has cut off.

import { useLayoutEffect, useRef, useState } from "../html.js";

/**
 * Refs for a box that scrolls sideways and for a second scrollbar, which stays at the lower end of the window while the
 * end of the box is below it; `width` is 0 while there is nothing to scroll.
 */
export function useScrollbar() {
  const box = useRef(null);
  const bar = useRef(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measure = () => {
      const { scrollWidth, clientWidth } = box.current;
      setWidth(scrollWidth > clientWidth + 1 ? scrollWidth : 0);
    };
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    observer.observe(box.current.firstElementChild);
    return () => observer.disconnect();
  }, []);
  const follow = (from, to) => () => {
    if (to.current && to.current.scrollLeft !== from.current.scrollLeft) to.current.scrollLeft = from.current.scrollLeft;
  };
  return { box, bar, width, onBox: follow(box, bar), onBar: follow(bar, box) };
}

/** Gives a cell that is cut off its whole text as a title. */
export function tellWhole(event) {
  const cell = event.target.closest?.("td, th");
  if (!cell) return;
  const inner = cell.querySelector(".whole") ?? cell;
  const isCut = [cell, inner].some((box) => box.scrollWidth > box.clientWidth + 1) || inner.scrollHeight > inner.clientHeight + 1;
  if (isCut) cell.title = cell.innerText.trim();
  else if (!cell.dataset.hint) cell.removeAttribute("title");
}

/** True if a click was on a row, and not on something that can be clicked or into chosen text. */
export const isOnRow = (event) =>
  !event.target.closest("a, button, input, select, label, summary") && window.getSelection().isCollapsed;
