// Resources by module and type, and the plot of sizes.

import type { Schemas } from "./api";

const MARGIN = 3; // around the plot

type Resource = Schemas["Resource"];
export type OfType = { type: string; providers: string[]; resources: Resource[] };
export type Module = { module: string; count: number; types: OfType[] };

/** Returns the modules, the root (an empty name) first, each with its types, data sources last. */
export function grouped(resources: readonly Resource[]): Module[] {
  const byModule = groups(resources, ({ module }) => module ?? "");
  return byModule.map(([module, ofModule]) => ({
    module,
    count: ofModule.length,
    // A tilde sorts after all letters, and no type has one.
    types: groups(ofModule, ({ mode, type }) => (mode === "data" ? `~${type}` : type)).map(([key, ofType]) => ({
      type: key.replace("~", "data "),
      providers: [...new Set(ofType.map(({ provider }) => provider))],
      resources: ofType,
    })),
  }));
}

function groups(resources: readonly Resource[], key: (resource: Resource) => string): [string, Resource[]][] {
  const found = new Map<string, Resource[]>();
  for (const resource of resources) {
    const group = found.get(key(resource));
    if (group) group.push(resource);
    else found.set(key(resource), [resource]);
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Returns the points of a line over sizes, oldest first; zero is at the bottom, so that heights compare. */
export function points(sizes: readonly number[], width: number, height: number): [number, number][] {
  const most = Math.max(...sizes, 1);
  const step = (width - 2 * MARGIN) / Math.max(1, sizes.length - 1);
  return sizes.map((size, at) => [
    Math.round(MARGIN + at * step),
    Math.round(height - MARGIN - (size / most) * (height - 2 * MARGIN)),
  ]);
}

/** Returns the plot in words, for those who do not see it. */
export function summary(sizes: readonly number[], bytes: (size: number) => string): string {
  const [first, last] = [sizes[0], sizes.at(-1)];
  if (first === undefined || last === undefined) return "There is no version.";
  if (sizes.length === 1) return `One version of ${bytes(first)}.`;
  const between = `between ${bytes(Math.min(...sizes))} and ${bytes(Math.max(...sizes))}`;
  return `${sizes.length} versions: from ${bytes(first)} to ${bytes(last)}, ${between}.`;
}
