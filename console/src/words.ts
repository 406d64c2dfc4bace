// The sentences about states, versions and locks. Times are not in here: <Age> shows them.

import type { Schemas } from "./api";
import { counted, moment } from "./format";

type Lock = Schemas["Lock"];
type Version = Schemas["Version"];
type State = Schemas["StateDescription"];

/** A principal, after the person whom the creator of its credentials named: that name alone proves nothing. */
const named = (principal: string | null, owner?: string | null) =>
  owner && principal ? `${owner} (${principal})` : (principal ?? "another program");

export type By = { principal: string | null; owner?: string | null | undefined; who?: string | null | undefined };

/**
 * Whom people call by name: the owner of the credentials, else the user and machine of the client, else the principal,
 * of a token the first letters of its ID. What a client says of itself is in quotes. `identity` tells the rest.
 */
export function person({ principal, owner, who }: By): string {
  const said = who && who !== principal ? claimed(who) : null;
  return (principal && owner) || said || (principal && short(principal)) || "another program";
}

/** A principal as people read it: enough of a token's ID to tell it from others, or an AWS role and its session. */
export const short = (principal: string): string =>
  principal
    .replace(/^token:(\w{8})\w+$/, "token $1…")
    .replace(/^oidc:.*?#(?=repo:|project_path:)/, "")
    .replace(/^arn:.*?role\/(?:AWSReservedSSO_(.*)_\w*|(.*))\//, "$1$2/");

/**
 * Returns by which name to call those who appear on one page: an owner is taken from the others of the same principal.
 * A machine is not: clients on several machines may have one token.
 */
export function acquainted(all: readonly By[]): (one: By) => By {
  const owned = all.filter(({ owner }) => owner).reverse(); // what comes first, which is newest, counts
  const owners = new Map(owned.map(({ principal, owner }) => [principal, owner]));
  return ({ principal, who }) => ({ principal, owner: owners.get(principal), who });
}

/** What a client says of itself, in quotes and on one line, so that it cannot pass for who it is. */
export const claimed = (text: string) => JSON.stringify(text.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, "?"));

/** Returns a message of the API with the caller's name alone, or with the first letters of the token's ID. */
export function namedIn(message: string, caller: By | null): string {
  const { principal, owner } = caller ?? {};
  if (!principal) return message;
  const called = owner ? named(principal, owner) : principal.replace(/^token:/, "token ");
  return message.replaceAll(called, () => person({ principal, owner }));
}

/** All that is known of who it was: the principal, and apart what its client says of itself if that differs. */
export const identity = ({ principal, owner, who }: By): string =>
  named(principal, owner) + (who && who !== principal ? ` (client says ${claimed(who)})` : "");

/** Who holds a lock, or who froze the state. */
export const lockedBy = (lock: Lock): By => (lock.freeze?.by ? { principal: lock.freeze.by, owner: lock.owner } : lock);

const OPERATIONS = new Map([
  ["OperationTypeApply", "apply"],
  ["OperationTypePlan", "plan"],
  ["OperationTypeRefresh", "refresh"],
  ["state-push", "push"],
]);

/** What a client did, in Terraform's words for people; another text as the client says it. */
export const operationWords = (operation: string | null): string => OPERATIONS.get(operation ?? "") ?? operation ?? "";

/** What S3 says of a changed object, without how that was done. */
const OF_S3: Record<string, string> = {
  ObjectCreated: "created or changed",
  ObjectRemoved: "deleted",
  Replication: "not copied",
};

/** What was done to an object, by the name of S3's notification; empty for any other text. */
export const s3Words = (operation: string): string => OF_S3[/^(\w+):\w+$/.exec(operation)?.[1] ?? ""] ?? "";

/** Returns a text as the end of a sentence. */
export const ended = (text: string): string => (text.endsWith("…") ? text : `${text}.`);

/** The same within a sentence, where a text that is not one word is quoted. */
export function inSentence(operation: string): string {
  const words = operationWords(operation);
  return /^[\w-]+$/.test(words) ? words : claimed(words);
}

/** The version of Terraform or OpenTofu: a state does not say which of them wrote it. */
export const clientWords = (version: string | null) => version && `client\u00a0${version}`;

/** What the lock is, without its time; its holder by name, or as `called` says. */
export function lockWords(lock: Lock, called: (by: By) => string = person): string {
  const { freeze } = lock;
  const by = called(lockedBy(lock));
  if (!freeze) return `locked by ${by}${lock.operation ? ` for ${inSentence(lock.operation)}` : ""}`;
  return freeze.ended ? `no longer frozen: ${freeze.reason}` : `frozen by ${by}: ${freeze.reason}`;
}

const STATUS: Record<string, string> = {
  acknowledged: "",
  never_acknowledged: "never acknowledged: its writer was refused",
  other_program: "written by another program",
};

/** The outcome of a write that is not the usual one; empty for an acknowledged one. */
export const statusWords = (status: string | null) => STATUS[status ?? ""] ?? status ?? "";

/** A version for a sentence: its serial, or its ID if another program wrote it. */
export const versionWords = ({ serial, version }: Pick<Version, "serial" | "version">) =>
  serial === null ? `version ${version}` : `serial ${serial}`;

/** What sets a version apart: its outcome, where its content is from, and why. */
export function note(version: Version, all: readonly Version[]): string {
  const { restored_from: source, reason, status, delete_marker } = version;
  const from = all.find((one) => one.version === source);
  const origin = source && `restored from ${from ? versionWords(from) : `version ${source}`}`;
  return [!delete_marker && statusWords(status), origin, reason].filter(Boolean).join(": ");
}

/** What a resource's sign does not tell of its change. */
export function resource({ change, moved_from, tainted, provider }: Schemas["ResourceChange"]): string {
  const taint = tainted === null ? "" : tainted ? "now tainted: the next apply replaces it" : "no longer tainted";
  const moved = moved_from !== null && `moved from ${moved_from}`;
  const by = provider && `provider ${provider.before} → ${provider.after}`;
  return [change === "replaced" && "replaced", moved, taint, by].filter(Boolean).join(", ");
}

/** Whether an output's mark changed. */
export const marked = (isSensitive: boolean | null): string =>
  isSensitive === null ? "" : isSensitive ? "now sensitive" : "no longer sensitive";

/** How many resources and outputs differ. */
export function counts(summary: Record<string, unknown>): string {
  const kinds = ["added", "removed", "moved", "replaced", "changed"].filter((kind) => summary[kind]);
  const resources = kinds.map((kind) => `${summary[kind]} ${kind}`).join(", ");
  return `Resources: ${resources || "the same"}. Outputs: ${summary.outputs || "none"} changed.`;
}

/** Who removed a lock or freeze first, as the audit trail says. */
export function remover(events: readonly Record<string, unknown>[], id: string): string {
  const isRemoval = ({ event }: Record<string, unknown>) => /released|unlocked|unfrozen/.test(String(event));
  const first = events.find((event) => isRemoval(event) && (event.freeze ?? event.lock_id) === id);
  if (first) return `${person({ principal: String(first.principal), owner: first.owner as string | null })} removed it`;
  return "its holder, another user or an earlier try of yours removed it";
}

export function restored({ serial, restored_serial, changed }: Schemas["Restored"]): string {
  if (!changed) return "The state has that content already: nothing was written.";
  const now = `Serial ${serial} is current now, restored from serial ${restored_serial}.`;
  return `${now} Run terraform plan to see what the infrastructure lacks.`;
}

/** Why a change was refused and what to do. `undone` says what did not happen, `seen` which version was current. */
export function refusal(code: string, message: string, undone: string, now?: State, seen?: string): string {
  const lock = now?.lock;
  const held = lock ? ended(`The state is ${lockWords(lock)}`) : now ? "Nobody holds the lock any more." : message;
  if (code === "base_changed") return `${meanwhile(now, seen) ?? message} ${undone} Above is what would happen now.`;
  if (code === "lock_not_matched" || code === "not_frozen") return `The lock has changed. ${held} ${undone}`;
  if (code !== "locked" && code !== "frozen") return message;
  const advice = code === "locked" ? "Wait, or break the lock if nobody uses it." : "Unfreeze it first.";
  return lock ? `${held} ${undone} ${advice}` : `${message} ${undone}`;
}

/** What somebody else did to a state meanwhile; undefined if that is not known. */
function meanwhile(now?: State, seen?: string): string | undefined {
  if (!now || now.version === seen) return undefined;
  if (!now.version) return "Meanwhile another user deleted the state.";
  const { serial, version, operation } = now;
  return `Meanwhile ${person(now)} wrote ${versionWords({ serial, version })}${operation ? ` (${inSentence(operation)})` : ""}.`;
}

/** What came of the freeze of a pattern: who had frozen it before, and which states it does not hold yet. */
export function frozenPattern(
  { pattern, id }: Schemas["FreezePattern"],
  placed: Schemas["PatternFreeze"] | undefined,
  frozen: number,
  left: readonly string[],
): string {
  const { by, owner, reason } = placed ?? { by: "another user", owner: null, reason: "" };
  const isOurs = !placed || placed.id === id;
  const done = isOurs
    ? `${pattern} is frozen, with ${counted(frozen, "state")}.`
    : `${pattern} was frozen already by ${person({ principal: by, owner })}: ${reason}.`;
  if (!left.length) return `${done} The freeze is complete. It includes states that are created later.`;
  return `${done} Still locked: ${left.join(", ")}. Freeze the pattern again when the locks are released.`;
}

/** Why a reason cannot be sent; empty if it can, and if it is `optional` also where there is none. */
export function reasonProblem(reason: string, optional = false): string {
  if (!reason.trim()) return optional ? "" : "Give a reason: clients and the audit trail show it.";
  const isSecret = /holdfast_[0-9A-Za-z]{20}|session-[0-9a-z]{20}|eyJ[\w-]+\.[\w-]+\.|^[0-9A-Za-z/+]{40}$/;
  return isSecret.test(reason) ? "This looks like a secret. Others will read the reason." : "";
}

/** The end of a freeze in so many hours, in the API's form; null for never. */
export const until = (hours = "never", now: number): string | null =>
  hours === "never" ? null : moment(now + Number(hours) * 3_600_000);

/** A new command ID: random, and the same in each retry. */
export const commandId = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
