// Preact, its hooks and htm: the only place that knows where they are from.

export {
  Component, createContext, h, html, render, useCallback, useContext, useEffect, useErrorBoundary,
  useLayoutEffect, useMemo, useReducer, useRef, useState,
} from "../vendor/htm-preact.js";

/** The class names that are asked for: `classes("card", isOpen && "is-open")`. */
export const classes = (...names) => names.filter(Boolean).join(" ");
