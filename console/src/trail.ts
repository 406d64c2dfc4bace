// Events of the audit trail: which are shown, and what of them. Events are selected as by `holdfast activity`, but
// without denied readings.

import { inSentence } from "./words";

export type Event = Record<string, unknown>;
export type Search = { kind: string; principal: string };

const WRITES = /^state\.(written|deleted|restored|undeleted)$/;
/** The doctor's probes write and delete states of these names. */
const OF_THE_DOCTOR = /^holdfast-doctor\//;
const LOOKS = /\.(read|listed|described|compared|absent|searched|accepted)$/;
/** Why a reading is refused. A write can be refused so too: its event tells more. */
const NOT_READ =
  /^(no_(state|versions?|resource|workspace)|no_such_version|not_allowed|unreadable_\w+|encrypted_state|unknown_route)$/;
const OF_A_WRITE = ["lock_id", "held_by", "serial", "serial_before", "operation"];
const IN_COLUMNS = /^(id|time|event|principal|owner|state|marker_left)$/;
const TECHNICAL = /^(function|request_id|source|source_ip|role|trust|token|session|status)$/;
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
  who.push(`token:${text(event, "token")}`);
  return !principal || who.includes(principal) || who.includes(`token:${principal}`);
}

/** Returns whether a request was refused that, as far as its event tells, would have changed nothing. */
const isRefusedReading = (event: Event): boolean =>
  NOT_READ.test(text(event, "error")) && !OF_A_WRITE.some((field) => text(event, field));

/** Returns who it was: the principal, else the one whose sign-in was refused. */
export const whose = (event: Event): string => text(event, "principal") || text(event, "subject") || "unknown";

/**
 * Returns what happened in words and without IDs; empty if the event's name says it all. `events` are all that were
 * read: an earlier one may tell the serial of the version that was restored.
 */
export function told(event: Event, events: readonly Event[]): string {
  const [operation, error, before, serial] = ["operation", "error", "serial_before", "serial"].map((field) =>
    text(event, field),
  );
  const source = text(event, "restored_from");
  const restored = events.find((one) => source && text(one, "version_id") === source);
  const earlier = (restored && text(restored, "serial")) || "";
  const parts = [
    error?.replaceAll("_", " "),
    operation && inSentence(operation),
    source && `restored from ${earlier ? `serial ${earlier}` : "an earlier version"}`,
    !source && serial && `serial ${before && before !== serial ? `${before} → ` : ""}${serial}`,
    text(event, "event") === "state.frozen" && "frozen",
  ];
  return [parts.filter(Boolean).join(", "), text(event, "reason")].filter(Boolean).join(": ");
}

/** Returns the other fields of an event: errors and reasons first, what is technical last. */
export function fields(event: Event): [string, string][] {
  const place = (name: string) => (FIRST.test(name) ? 0 : TECHNICAL.test(name) ? 2 : 1);
  const names = Object.keys(event).filter((name) => !IN_COLUMNS.test(name) && text(event, name));
  return names.toSorted((a, b) => place(a) - place(b)).map((name) => [name, text(event, name)]);
}
