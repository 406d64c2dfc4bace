// Which rows of a long list are shown, and in which order. Nothing here touches the page.

import type { Schemas } from "./api";

export type State = Schemas["StateItem"];
export type Column = "name" | "size" | "modified" | "lock";
export type Order = { by: Column; down: boolean; locked: boolean };

/** Returns the words of what was typed. */
export const wordsOf = (typed: string): string[] => typed.toLowerCase().split(/\s+/).filter(Boolean);

/** Returns the states whose names contain every word that was typed. */
export function matching(states: State[], typed: string): State[] {
  const words = wordsOf(typed);
  if (!words.length) return states;
  return states.filter(({ name }) => {
    const small = name.toLowerCase();
    return words.every((word) => small.includes(word));
  });
}

/** Returns states in an order; those without a value come last, and equal ones are ordered by name. */
export function ordered(states: State[], { by, down, locked }: Order): State[] {
  const value = (state: State): string | number | null => (by === "lock" ? (state.lock?.since ?? null) : state[by]);
  const compare = (a: State, b: State): number => {
    if (locked && !a.lock !== !b.lock) return a.lock ? -1 : 1;
    const [left, right] = [value(a), value(b)];
    if (left === null || right === null) return left === right ? byName(a, b) : left === null ? 1 : -1;
    if (left === right) return byName(a, b);
    return left < right === down ? 1 : -1;
  };
  return [...states].sort(compare);
}

const byName = (a: State, b: State): number => (a.name < b.name ? -1 : 1);

/** Returns the first row to draw and the one after the last, of rows of one height below `top`. */
export function drawn(count: number, top: number, height: number, row: number, more: number): [number, number] {
  const first = Math.min(Math.max(0, Math.floor(-top / row) - more), count);
  return [first, Math.max(first, Math.min(count, Math.ceil((height - top) / row) + more))];
}

/** Returns the parts of a name, each with whether it is one that was typed. */
export function marked(name: string, typed: string): [string, boolean][] {
  const small = name.toLowerCase();
  const hit = new Array<boolean>(name.length).fill(false);
  for (const word of wordsOf(typed)) {
    for (let at = small.indexOf(word); at >= 0; at = small.indexOf(word, at + 1)) hit.fill(true, at, at + word.length);
  }
  const parts: [string, boolean][] = [];
  for (const [at, letter] of [...name].entries()) {
    const last = parts.at(-1);
    if (last && last[1] === hit[at]) last[0] += letter;
    else parts.push([letter, hit[at] ?? false]);
  }
  return parts;
}
