// Events of the audit trail: which are shown, and what of them. Events are selected as by `holdfast activity`, but
// without denied readings.

import { counted, exactly } from "./format";
import { acquainted, type By, inSentence, person, s3Words, short } from "./words";

export type Event = Record<string, unknown>;
export type Search = { kind: string; principal: string };

/** Events whose names do not say plainly what happened, in words. The names of the others are their words. */
const EVENTS: Record<string, string> = {
  "sign_in.accepted": "Signed in",
  "lock.force_unlocked": "Lock broken",
  "state.unchanged": "Nothing changed",
  "replica.failed": "Copy to replica failed",
  "caller.described": "Own rights read",
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
const FIRST = /^(error|reason)$/;
/** The fields that people read next; the others are technical. */
const PLAIN = /^(owner|who|role|held_by|operation|until|serial.*)$/;
/** Names of fields that do not say plainly what they are. */
const FIELDS: Record<string, string> = { who: "Client says", freeze: "Freeze ID", source: "Signed in with" };

/** Returns a field as text; empty if the event does not have it. */
export function text(event: Event, field: string): string {
  const value = event[field] ?? "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Returns whether an event is one that was asked for: by kind, and by principal, subject or token. */
export function selected(event: Event, { kind, principal }: Search): boolean {
  const name = text(event, "event");
  const isLook = LOOKS.test(name) || isRefusedReading(event);
  if (kind !== "all" && OF_THE_DOCTOR.test(text(event, "state"))) return false;
  if (kind === "writes" ? !WRITES.test(name) : !kind && isLook) return false;
  const who = ["principal", "subject", "owner"].map((field) => text(event, field));
  who.push(`token:${text(event, "token")}`, short(whose(event)), by(event).who ?? "");
  return [principal, `token:${principal}`].some((asked) => !principal || who.includes(asked));
}

/** Who it was, as far as the event tells, or an event of the same caller and lock: `clients` has who these tell. */
const by = (event: Event, clients?: ReadonlyMap<string, string>): By => ({
  principal: whose(event),
  owner: text(event, "owner"),
  who: OF_THE_CALLER.test(text(event, "event")) ? text(event, "who") || clients?.get(ofLock(event)) : null,
});

/** Returns whether an event is about a frozen pattern, and not about one state. */
export const isPattern = (state: string): boolean => state.includes("*");

/** Returns the name of an event in words. */
export const eventWords = (name: string): string => EVENTS[name] ?? capital(name.replace(".", " ").replace("_", "-"));

/** Returns words with a capital letter, and the ends "id" and "ip" in capitals. */
const capital = (words: string): string => words.replace(/^.|\bi[dp]$/g, (part) => part.toUpperCase());

/** Returns whether a request was refused that, as far as its event tells, would have changed nothing. */
const isRefusedReading = (event: Event): boolean =>
  NOT_READ.test(text(event, "error")) && !OF_A_WRITE.some((field) => text(event, field));

/** Returns who it was: the principal, else the one whose sign-in was refused. */
export const whose = (event: Event): string => text(event, "principal") || text(event, "subject") || "unknown";

const ofLock = (event: Event) => text(event, "lock_id") + whose(event);

/** Returns by which name to call who did an event of a page, and whose lock it removed. */
export function people(events: readonly Event[]): (event: Event, field?: "held_by") => By {
  const clients = new Map(events.filter((event) => by(event).who).map((event) => [ofLock(event), text(event, "who")]));
  const known = acquainted(events.map((event) => by(event)));
  return (event, field) =>
    known(field ? { principal: text(event, field) || null, who: text(event, "who") } : by(event, clients));
}

/** A row of the activity: an event and, if that is a freeze of a pattern or its end, the names of the states. */
export type Row = { event: Event; states: string[] };

/** Returns the rows of events: those that one caller's freeze of a pattern caused are one, and those of its end. */
export function rows(events: readonly Event[]): Row[] {
  const found = new Map<string, Event[]>();
  for (const event of events) {
    const name = text(event, "event");
    const freeze = /frozen$/.test(name) && text(event, "freeze");
    const key = freeze ? name + freeze + whose(event) : text(event, "id");
    found.set(key, [...(found.get(key) ?? []), event]);
  }
  return [...found.values()].map((all) => {
    const of = new Map(all.map((event) => [text(event, "state"), event])); // a repeated freeze tells a state again
    const names = [...of.keys()].filter((name) => !isPattern(name));
    const event = all.find((one) => isPattern(text(one, "state"))) ?? all[0] ?? {};
    return { event, states: of.size > 1 ? names : [] };
  });
}

/** Returns the code of a refusal or failure, or the reason of a refused sign-in, in words. */
const refusalWords = (code: string): string =>
  REFUSALS[/undecided$/i.test(code) ? "undecided" : code] ?? code.replace(/_|(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();

/**
 * Returns what happened in words and without IDs; empty if the event's name says it all. `events` are all that were
 * read: another one may tell the name of who held a lock. `states` is how many states a freeze of a pattern froze, or
 * its end unfroze.
 */
export function told(event: Event, events: readonly Event[], states = 0): string {
  const field = (name: string) => text(event, name);
  const [name, freeze, reason] = [field("event"), field("freeze"), field("reason")];
  const isCode = reason && /^(sign_in|replica)/.test(name); // it says more than the error
  const error = isCode ? "" : field("error");
  const [before, serial] = [field("serial_before"), field("serial")];
  const isWrite = name !== "state.unchanged"; // it has the fields of the write that it made needless
  const earlier = field("restored_serial");
  const operation = field("operation");
  const holder = field("held_by") && people(events)(event, "held_by");
  const by = holder ? ` by ${person(holder)}` : "";
  const isHeld = /^(locked|frozen)$/.test(error); // the refusal's own word says how
  const parts = [
    name === "token.changed" && short(`token:${field("token")}`),
    name === "session.created" && `trust ${field("trust")}`,
    error && (name === "request.failed" ? "a fault of Holdfast" : refusalWords(error)) + (isHeld ? by : ""),
    operation && !field("restored_from") && (s3Words(operation) || inSentence(operation)),
    by && !isHeld && (!freeze ? "held" : isWrite ? "frozen" : "frozen already") + by,
    serial && `serial ${isWrite && before && before !== serial ? `${before} → ` : ""}${serial}`,
    isWrite && earlier && `restored from serial ${earlier}`,
    states > 0 && counted(states, "state"),
  ];
  const why = isCode ? refusalWords(reason) : reason;
  return [parts.filter(Boolean).join(", "), why].filter(Boolean).join(": ");
}

/** Returns the other fields of an event by their names in words: errors and reasons first, what is technical last. */
export function fields(event: Event): [string, string][] {
  const place = (name: string) => (FIRST.test(name) ? 0 : PLAIN.test(name) ? 1 : 2);
  const names = Object.keys(event).filter((name) => !IN_COLUMNS.test(name) && text(event, name));
  return names
    .toSorted((a, b) => place(a) - place(b))
    .map((name) => [
      FIELDS[name] ?? capital(name.replace("_", " ")),
      name === "until" ? exactly(text(event, name)) : text(event, name),
    ]);
}
