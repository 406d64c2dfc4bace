// Events of the audit trail: which are shown, and what of them. The selection is that of `holdfast activity`.

export type Event = Record<string, unknown>;
export type Search = { kind: string; principal: string };

const WRITES = /^state\.(written|deleted|restored|undeleted)$/;
/** The doctor's probes write and delete states of these names. */
const OF_THE_DOCTOR = /^holdfast-doctor\//;
const LOOKS = /\.(read|listed|described|compared|absent|searched|accepted)$/;
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
  const isLook = LOOKS.test(name) || text(event, "error") === "no_state";
  if (kind === "" && (isLook || OF_THE_DOCTOR.test(text(event, "state")))) return false;
  if (kind === "writes" && !WRITES.test(name)) return false;
  const who = ["principal", "subject", "owner"].map((field) => text(event, field));
  who.push(`token:${text(event, "token")}`);
  return !principal || who.includes(principal) || who.includes(`token:${principal}`);
}

/** Returns who it was: the principal, else the one whose sign-in was refused. */
export const whose = (event: Event): string => text(event, "principal") || text(event, "subject") || "unknown";

/** Returns the other fields of an event: those that tell what happened, then all the rest. */
export function fields(event: Event): { told: [string, string][]; rest: [string, string][] } {
  const names = Object.keys(event).filter((name) => !IN_COLUMNS.test(name) && text(event, name));
  names.sort((a, b) => Number(FIRST.test(b)) - Number(FIRST.test(a)));
  const texts = (are: boolean) =>
    names.filter((name) => TECHNICAL.test(name) === are).map((name): [string, string] => [name, text(event, name)]);
  return { told: texts(false), rest: texts(true) };
}
