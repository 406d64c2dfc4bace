// Events of the audit trail: which are shown, and what of them. The selection is that of `holdfast activity`.

export type Event = Record<string, unknown>;
export type Search = { kind: string; principal: string };

const WRITES = /^state\.(written|deleted|restored|undeleted)$/;
const LOOKS = /\.(read|listed|described|compared|absent|found)$/;
const APART = new Set(["id", "time", "event", "principal", "owner", "state"]);
const FIRST = new Set(["error", "reason"]);
const TECHNICAL = new Set([
  "function",
  "request_id",
  "source_ip",
  "source",
  "role",
  "trust",
  "token",
  "session",
  "status",
]);

/** Returns a field as text; empty if the event does not have it. */
export function text(event: Event, field: string): string {
  const value = event[field];
  return value === undefined || value === null
    ? ""
    : typeof value === "string"
      ? value
      : JSON.stringify(value);
}

/** Returns whether an event is one that was asked for: by kind or name, and by principal, subject or token. */
export function selected(event: Event, { kind, principal }: Search): boolean {
  const name = text(event, "event");
  if (kind === "" && LOOKS.test(name)) return false;
  if (kind === "writes" && !WRITES.test(name)) return false;
  if (kind.includes(".") && kind !== name) return false;
  if (!principal) return true;
  const known = ["principal", "subject", "owner"].some((field) => text(event, field) === principal);
  return known || [text(event, "principal"), `token:${text(event, "token")}`].includes(`token:${principal}`);
}

/** Returns who it was: the person, else the principal, else the one whose sign-in was refused. */
export const whose = (event: Event): string =>
  text(event, "owner") || text(event, "principal") || text(event, "subject") || "unknown";

/** Returns the other fields of an event: those that tell what happened, then all the rest. */
export function fields(event: Event): { told: [string, string][]; rest: [string, string][] } {
  const all = Object.keys(event)
    .filter((field) => !APART.has(field) && text(event, field) !== "")
    .map((field): [string, string] => [field, text(event, field)]);
  all.sort(([a], [b]) => Number(FIRST.has(b)) - Number(FIRST.has(a)));
  const isTold = ([field]: [string, string]) => !TECHNICAL.has(field);
  return { told: all.filter(isTold), rest: all.filter((field) => !isTold(field)) };
}
