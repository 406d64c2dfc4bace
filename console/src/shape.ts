// Resources by module and type, and the plot of sizes.

import type { Schemas } from "./api";
import { bytes, counted } from "./format";

export const WIDTH = 320; // of the plot
export const HEIGHT = 64;
const APART = 8; // at least

type Resource = Schemas["Resource"];

/** Returns the modules, the root (an empty name) first, each with its types, data sources last. */
export const grouped = (all: readonly Resource[]) =>
  groups(all, ({ module }) => module ?? "").map(([module, ofModule]) => ({
    module,
    count: ofModule.length,
    // A tilde sorts after all letters, and no type has one.
    types: groups(ofModule, ({ mode, type }) => (mode === "data" ? `~${type}` : type)).map(([type, resources]) => ({
      type: type.replace("~", "data "),
      providers: [...new Set(resources.map(({ provider }) => provider))],
      resources,
    })),
  }));

function groups(all: readonly Resource[], key: (resource: Resource) => string): [string, Resource[]][] {
  const names = [...new Set(all.map(key))].sort();
  return names.map((name) => [name, all.filter((resource) => key(resource) === name)]);
}

type Sized = { time: string; size: number | null };

/** Returns for each version, oldest first, the place of its bar, by its time but beside the one before, and its height. */
export function bars(versions: readonly Sized[]): [x: number, height: number][] {
  const times = versions.map(({ time }) => Date.parse(time));
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  const scale = (WIDTH - APART * times.length) / (last - first || 1);
  const most = Math.max(...versions.map(({ size }) => size ?? 0));
  return times.map((time, at) => [APART * at + scale * (time - first), (HEIGHT * (versions[at]?.size ?? 0)) / most]);
}

/** Returns how many versions there are and how large, in words. */
export function summary(versions: readonly Sized[]): string {
  const sizes = versions.map(({ size }) => size ?? 0);
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)].map(bytes);
  return `${counted(sizes.length, "version")} of ${least === most ? "" : "up to "}${most}`;
}
