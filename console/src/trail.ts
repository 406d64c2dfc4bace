// Events of the audit trail: which are shown, and what of them. Events are selected as by `holdfast activity`, but
// without denied readings.

import { acquainted, type By, inSentence, person, s3Words, short } from "./words";

export type Event = Record<string, unknown>;
export type Search = { kind: string; principal: string };

/** Every event of the audit trail, in words. */
const EVENTS: Record<string, string> = {
  "sign_in.accepted": "Signed in",
  "sign_in.refused": "Sign-in refused",
  "sign_in.failed": "Sign-in failed",
  "session.created": "Session created",
  "lock.acquired": "Lock acquired",
  "lock.released": "Lock released",
  "lock.force_unlocked": "Lock broken",
  "state.read": "State read",
  "state.absent": "Missing state read",
  "outputs.read": "Outputs read",
  "state.written": "State written",
  "state.unchanged": "Nothing changed",
  "state.deleted": "State deleted",
  "workspace.read": "Workspace read",
  "workspace.absent": "Missing workspace read",
  "workspaces.listed": "Workspaces listed",
  "workspace.created": "Workspace created",
  "workspace.changed": "Workspace changed",
  "workspace.deleted": "Workspace deleted",
  "upload.created": "Upload begun",
  "service.described": "Service discovered",
  "states.listed": "States listed",
  "state.described": "State looked at",
  "history.read": "History read",
  "state.compared": "Versions compared",
  "states.searched": "Resource searched for",
  "state.restored": "Version restored",
  "state.undeleted": "State undeleted",
  "state.declared": "State declared",
  "state.undeclared": "State undeclared",
  "state.frozen": "State frozen",
  "state.unfrozen": "State unfrozen",
  "locks.listed": "Locks listed",
  "activity.read": "Activity read",
  "token.changed": "Token changed",
  "trust.changed": "Trust changed",
  "replica.failed": "Copy to replica failed",
  "caller.described": "Own rights read",
  "request.refused": "Request refused",
  "request.failed": "Request failed",
};
/** What a refusal's code does not say plainly; the words of the others are their own. */
const REFUSALS: Record<string, string> = {
  not_allowed: "the role or scope does not allow it",
  undecided: "the outcome is unknown",
  unknown_or_wrong: "unknown ID or wrong secret",
};
/** Events whose `who` is the caller's client; of others it is somebody else's. */
const OF_THE_CALLER = /^(lock\.(acquired|released)|state\.written)$/;

const WRITES = /^state\.(written|deleted|restored|undeleted)$/;
/** The doctor's probes write and delete states of these names. */
const OF_THE_DOCTOR = /^holdfast-doctor\//;
const LOOKS = /\.(read|listed|described|compared|absent|searched|accepted)$/;
/** Why a reading finds nothing. A write can be refused so too: its event tells more. */
const NOT_READ =
  /^(no_(state|versions?|resource|workspace)|no_such_version|unreadable_\w+|encrypted_state|unknown_route)$/;
const OF_A_WRITE = ["lock_id", "held_by", "serial", "serial_before", "operation"];
const IN_COLUMNS = /^(id|time|state|marker_left)$/;
const TECHNICAL = /^(event|principal|function|request_id|source|source_ip|role|trust|token|session|status)$/;
const FIRST = /^(error|reason)$/;

/** Returns a field as text; empty if the event does not have it. */
export function text(event: Event, field: string): string {
  const value = event[field] ?? "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Returns whether an event is one that was asked for: by kind, and by principal, subject or token. */
export function selected(event: Event, { kind, principal }: Search): boolean {
  const name = text(event, "event");
  const isLook = LOOKS.test(name) || isRefusedReading(event);
  if (kind === "" && (isLook || OF_THE_DOCTOR.test(text(event, "state")))) return false;
  if (kind === "writes" && !WRITES.test(name)) return false;
  const who = ["principal", "subject", "owner"].map((field) => text(event, field));
  who.push(`token:${text(event, "token")}`, short(whose(event)), by(event).who ?? "");
  return [principal, `token:${principal}`].some((asked) => !principal || who.includes(asked));
}

/** Who it was, as far as the event itself tells. */
const by = (event: Event): By => ({
  principal: whose(event),
  owner: text(event, "owner"),
  who: OF_THE_CALLER.test(text(event, "event")) ? text(event, "who") : null,
});

/** Returns whether an event is about a frozen pattern, and not about one state. */
export const isPattern = (state: string): boolean => state.includes("*");

/** Returns the name of an event in words. */
export const eventWords = (name: string): string => EVENTS[name] ?? name;

/** Returns whether a request was refused that, as far as its event tells, would have changed nothing. */
const isRefusedReading = (event: Event): boolean =>
  NOT_READ.test(text(event, "error")) && !OF_A_WRITE.some((field) => text(event, field));

/** Returns who it was: the principal, else the one whose sign-in was refused. */
export const whose = (event: Event): string => text(event, "principal") || text(event, "subject") || "unknown";

/** Returns by which name to call who did an event of a page, and whose lock it removed. */
export function people(events: readonly Event[]): (event: Event, field?: "held_by") => By {
  const holders = events.map((event) => ({ principal: text(event, "held_by"), who: text(event, "who") }));
  const known = acquainted([...events.map(by), ...holders]);
  return (event, field) => known({ principal: field ? text(event, field) || null : whose(event) });
}

/** Returns a refusal's code, or the reason of a refused sign-in, in words. */
const refusalWords = (code: string): string =>
  REFUSALS[/undecided$/.test(code) ? "undecided" : code] ?? code.replaceAll("_", " ");

/**
 * Returns what happened in words and without IDs; empty if the event's name says it all. `events` are all that were
 * read: an earlier one may tell the serial of the version that was restored, or the name of who held a lock.
 */
export function told(event: Event, events: readonly Event[]): string {
  const [name, operation, error, before, serial, reason] = [
    "event",
    "operation",
    "error",
    "serial_before",
    "serial",
    "reason",
  ].map((field) => text(event, field));
  const source = text(event, "restored_from");
  const restored = events.find((one) => source && text(one, "version_id") === source);
  const earlier = (restored && text(restored, "serial")) || "";
  const holder = text(event, "held_by") && people(events)(event, "held_by");
  const by = holder ? ` by ${person(holder)}` : "";
  const isHeld = /^(locked|frozen)$/.test(error ?? ""); // the refusal's own word says how
  const parts = [
    name === "token.changed" && short(`token:${text(event, "token")}`),
    error && (name === "request.failed" ? "a fault of Holdfast" : refusalWords(error)) + (isHeld ? by : ""),
    operation && !source && (s3Words(operation) || inSentence(operation)),
    by && !isHeld && (/frozen$/.test(name ?? "") ? "frozen" : "held") + by,
    earlier && name !== "state.undeleted" && `restored from serial ${earlier}`,
    !source && serial && `serial ${before && before !== serial ? `${before} → ` : ""}${serial}`,
  ];
  const why = reason && name?.startsWith("sign_in.") ? refusalWords(reason) : reason;
  return [parts.filter(Boolean).join(", "), why].filter(Boolean).join(": ");
}

/** Returns the other fields of an event: errors and reasons first, what is technical last. */
export function fields(event: Event): [string, string][] {
  const place = (name: string) => (FIRST.test(name) ? 0 : TECHNICAL.test(name) ? 2 : 1);
  const names = Object.keys(event).filter((name) => !IN_COLUMNS.test(name) && text(event, name));
  return names.toSorted((a, b) => place(a) - place(b)).map((name) => [name, text(event, name)]);
}
