// The text of an input, a moment after the last key.

import { useEffect, useState } from "../html.js";

const TYPING_MS = 350;

/** A value (a text, or null) as it was when it last stayed the same for a moment. */
export function useSettled(value) {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), TYPING_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
