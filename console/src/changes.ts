// The changes between two versions: their kinds, which of them are alike, and their place in the history.

import type { Schemas } from "./api";

export const SIGNS = { added: "+", moved: "→", replaced: "±", changed: "~", removed: "−" } as const;
export type Kind = keyof typeof SIGNS | "output";
type Resource = Schemas["ResourceChange"];
type Version = Schemas["Version"];

const FEW = 3; // alike resources are folded from this number on
const KEY = /\[(?:\d+|"(?:[^"\\]|\\.)*")\]/g; // of an instance of a resource or a module

/** Returns how many resources of each kind there are, and outputs; kinds without any are left out. */
export function tally(summary: Record<string, unknown>): [Kind, number][] {
  const counts: Record<string, unknown> = { ...summary, output: summary.outputs };
  const kinds = [...Object.keys(SIGNS), "output"] as Kind[];
  return kinds.map((kind): [Kind, number] => [kind, Number(counts[kind])]).filter(([, count]) => count > 0);
}

/** Returns the resources in groups: instances of one resource that changed alike are together, if they are several. */
export function alike(resources: readonly Resource[]): Resource[][] {
  const groups = new Map<string, Resource[]>();
  for (const resource of resources) {
    const { address, change, moved_from, tainted, provider, attributes } = resource;
    const parts = attributes.map((part) => [part.path, part.change, part.sensitive]);
    const names = [address, moved_from].map((name) => name?.replace(KEY, "[]"));
    const key = JSON.stringify([names, change, tainted, provider, parts]);
    groups.set(key, [...(groups.get(key) ?? []), resource]);
  }
  return [...groups.values()].flatMap((group) => (group.length < FEW ? group.map((one) => [one]) : [group]));
}

/** Returns addresses of one resource as a range, such as `a.b[0] … [2]`. */
export function range(addresses: readonly string[]): string {
  const [first = "", last = ""] = [addresses[0], addresses.at(-1)];
  let same = 0;
  while (same < first.length && first[same] === last[same]) same += 1;
  return `${first} … ${last.slice(Math.max(0, last.lastIndexOf("[", same)))}`;
}

/** Two versions, the older one first. */
export type Step = { from: Version; to: Version };

/** Returns the changes before and after the one between two versions; `versions` are those with content, newest first. */
export function neighbours(versions: readonly Version[], from: string, to: string): { before?: Step; after?: Step } {
  const places = [from, to].map((id) => versions.findIndex(({ version }) => version === id));
  if (places.includes(-1)) return {};
  const step = (at: number): Step | undefined => {
    const [newer, older] = [versions[at], versions[at + 1]];
    return newer && older && { from: older, to: newer };
  };
  const [before, after] = [step(Math.max(...places)), step(Math.min(...places) - 1)];
  return { ...(before && { before }), ...(after && { after }) };
}
