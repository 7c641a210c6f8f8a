// The first script: loads all the others. It imports nothing, so that it can wait for a broker that goes away meanwhile.

/** Seconds until the page is loaded again, after each load that failed; the last is for all later ones. */
const PAUSES_S = [1, 2, 3, 5, 8, 10];
const KEY = "leveret.starts";

let failed = 0;
try {
  failed = Number(sessionStorage.getItem(KEY)) || 0;
} catch {
  // A browser without storage begins at the first pause each time.
}

function keep(count) {
  try {
    if (count === 0) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, count);
  } catch {
    // As above.
  }
}

/** True if the broker serves its page, and no proxy something else. */
async function isThere() {
  try {
    const answer = await fetch("js/main.js", { cache: "no-store", credentials: "omit" });
    return answer.ok && /javascript/.test(answer.headers.get("content-type") ?? "");
  } catch {
    return false;
  }
}

const wait = (ms) => new Promise((resolve) => {
  setTimeout(resolve, ms);
});

/** Says why there is no page yet, tries until the broker is there, and loads the page again: login and address stay. */
async function comeBack(error) {
  const line = document.createElement("p");
  line.className = "startup";
  line.setAttribute("role", "alert");
  line.dataset.test = "away";
  document.getElementById("page").replaceChildren(line);
  for (;;) {
    const pauseS = PAUSES_S[Math.min(failed, PAUSES_S.length - 1)];
    // A file that is there and cannot be run is no matter of the broker.
    const why = await isThere() ? `This page cannot be started: ${error.message}.` : "The broker cannot be reached.";
    for (let left = pauseS; left > 0; left -= 1) {
      line.textContent = `${why} Next try in ${left} s.`;
      await wait(1000);
    }
    failed += 1;
    keep(failed);
    if (await isThere()) break;
  }
  location.reload();
}

import("./main.js").then(() => keep(0), comeBack);
