// Resources by module and type, and the plot of sizes.

import type { Schemas } from "./api";

const MARGIN = 3; // around the plot

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

/** Returns the points of a line over sizes, oldest first; zero is at the bottom, so that heights compare. */
export function points(sizes: readonly number[], width: number, height: number): [number, number][] {
  const most = Math.max(...sizes, 1);
  const step = (width - 2 * MARGIN) / Math.max(1, sizes.length - 1);
  const high = (size: number) => Math.round(height - MARGIN - (size / most) * (height - 2 * MARGIN));
  return sizes.map((size, at) => [Math.round(MARGIN + at * step), high(size)]);
}

/** Returns the plot in words, for those who do not see it. */
export function summary(sizes: readonly number[], bytes: (size: number) => string): string {
  const [first, last] = [sizes[0], sizes.at(-1)];
  if (first === undefined || last === undefined) return "There is no version.";
  if (sizes.length === 1) return `One version of ${bytes(first)}.`;
  const between = `between ${bytes(Math.min(...sizes))} and ${bytes(Math.max(...sizes))}`;
  return `${sizes.length} versions: from ${bytes(first)} to ${bytes(last)}, ${between}.`;
}
