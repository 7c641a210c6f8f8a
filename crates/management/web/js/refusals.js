// The API's refusals in sentences.

const SENTENCES = {
  Not_Authorized: "Wrong user name or password.",
  "Not management user": "Your user lacks the tag management (or policymaker, monitoring, administrator).",
  "Not monitor user": "You need the tag monitoring for this.",
  "Not administrator user": "You need the tag administrator for this.",
  "User not authorised to access object": "Your tags do not allow access to this.",
  "User can only log in via localhost": "This user can log in only from the broker's machine (localhost).",
  "Access refused.": "Your permissions in this virtual host do not allow this.",
  vhost_not_found: "There is no such virtual host.",
};

/** Refusals of the whole login: no request of this user is answered. */
const OF_LOGIN = ["Not management user", "User can only log in via localhost"];

/** A reason of the API, as a sentence where the reason is known. */
export const sentence = (reason) => SENTENCES[reason] ?? reason;

/** Why a session ends because of this refusal; null if the session goes on. */
export function endOfSession(status, { error, reason } = {}) {
  if (status !== 401) return null;
  if (error === "not_authorized") return "The broker does not accept this login any more: log in again.";
  return OF_LOGIN.includes(reason) ? sentence(reason) : null;
}

/** The tags that include each tag. */
const HOLDERS = {
  management: ["management", "policymaker", "monitoring", "administrator"],
  policymaker: ["policymaker", "administrator"],
  monitoring: ["monitoring", "administrator"],
  administrator: ["administrator"],
};

/** True if a user with these tags has what `tag` gives; no tag is needed for undefined. */
export const includesTag = (tags, tag) => tag === undefined || tags.some((one) => HOLDERS[tag].includes(one));
