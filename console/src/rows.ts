// Which rows of a long list are shown, and in which order. Nothing here touches the page.

import type { Schemas } from "./api";

export type State = Schemas["StateItem"];

export const ORDERS = { name: "by name", size: "largest first", modified: "latest write first" };

/** Returns the states whose names contain every word that was typed. */
export function matching(states: State[], typed: string): State[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return states;
  return states.filter(({ name }) => {
    const small = name.toLowerCase();
    return words.every((word) => small.includes(word));
  });
}

/** Returns states in an order, locked ones on top if wished; those without a value come last, equal ones by name. */
export function ordered(states: State[], by: string, locked: boolean): State[] {
  const value = ({ size, modified }: State) =>
    by === "size" ? (size ?? -1) : by === "modified" ? Date.parse(modified ?? "") || 0 : 0;
  const below = ({ lock }: State) => Number(locked && !lock);
  return states.toSorted((a, b) => below(a) - below(b) || value(b) - value(a) || (a.name < b.name ? -1 : 1));
}

/** Returns the first row in view and the one after the last, of rows of one height below `top`. */
export function inView(count: number, top: number, height: number, row: number): [number, number] {
  const first = Math.min(Math.max(0, Math.floor(-top / row)), count);
  return [first, Math.max(first, Math.min(count, Math.ceil((height - top) / row)))];
}
