// Which rows of a long list are shown, and in which order. Nothing here touches the page.

import type { Schemas } from "./api";

export type State = Schemas["StateItem"];
/** A row: a state, or the head of those whose names begin with the same segment. */
export type Row = { state: State; inGroup?: boolean } | { group: string; count: number; isOpen: boolean };

const HOUR = 3_600_000;
const FEW = 25; // states that a group shows until somebody folds it

/** Returns the states whose names contain every word that was typed. */
export function matching(states: State[], typed: string): State[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return states;
  return states.filter(({ name }) => {
    const small = name.toLowerCase();
    return words.every((word) => small.includes(word));
  });
}

/** What states are looked for by: which need somebody. `now` is in milliseconds since 1970. */
export const NEEDS = {
  old: ({ lock }: State, now: number) => lock !== null && !lock.freeze && now - Date.parse(lock.since) > HOUR,
  frozen: ({ lock }: State) => Boolean(lock?.freeze),
};

type Value = string | number | null;
/** What a head sorts by; `descends` is which way at first. A state without a value comes last either way. */
const ORDERS: Record<string, { descends: boolean; value: (state: State) => Value }> = {
  name: { descends: false, value: () => 0 },
  size: { descends: true, value: ({ size }) => size },
  modified: { descends: true, value: ({ modified }) => modified },
  lock: { descends: false, value: ({ lock }) => lock && (lock.freeze?.since ?? lock.since) },
};

/** Returns by which head a list is sorted and whether it descends, for an address's text as `size` or `-size`. */
export function orderOf(text: string): { by: string; descends: boolean } {
  const by = text.replace("-", "");
  const order = Object.hasOwn(ORDERS, by) ? ORDERS[by] : undefined;
  if (!order) return { by: "name", descends: false };
  return { by, descends: order.descends !== text.startsWith("-") };
}

/** Returns states in an order, equal ones by name. */
export function ordered(states: State[], text: string): State[] {
  const { by, descends } = orderOf(text);
  const turn = descends ? -1 : 1;
  const value = ORDERS[by]?.value ?? (() => 0);
  const byName = by === "name" ? turn : 1;
  const values = new Map(states.map((state) => [state, value(state)]));
  return states.toSorted((a, b) => {
    const [one, other] = [values.get(a) ?? null, values.get(b) ?? null];
    if (one === other) return a.name < b.name ? -byName : byName;
    if (one === null || other === null) return one === null ? 1 : -1;
    return one < other ? -turn : turn;
  });
}

/** Returns the first segment of a name with its slash; empty for a name of one segment. */
export const groupOf = (name: string): string => name.slice(0, name.indexOf("/") + 1);

/**
 * Returns the rows of states in the order of their names, with a head above those of each group. A group that nobody
 * has opened or folded shows its states if they are few, or `allOpen`.
 */
export function inGroups(states: State[], opened: ReadonlyMap<string, boolean>, allOpen: boolean): Row[] {
  const groups = new Map<string, State[]>([["", []]]); // names of one segment come first
  for (const state of states) {
    const group = groupOf(state.name);
    const of = groups.get(group);
    if (of) of.push(state);
    else groups.set(group, [state]);
  }
  return [...groups].flatMap(([group, of]): Row[] => {
    const isOpen = !group || allOpen || (opened.get(group) ?? of.length <= FEW);
    const rows = isOpen ? of.map((state) => ({ state, inGroup: group !== "" })) : [];
    return group ? [{ group, count: of.length, isOpen }, ...rows] : rows;
  });
}

/** Returns where each row begins and, at last, where the list ends, for the heights of a state's row and a group's. */
export function places(rows: readonly Row[], state: number, group: number): number[] {
  const tops = [0];
  for (const row of rows) tops.push((tops.at(-1) ?? 0) + ("group" in row ? group : state));
  return tops;
}

/** Returns the first row in view and the one after the last, of rows at such places below `top`. */
export function inView(tops: readonly number[], top: number, height: number): [number, number] {
  const count = tops.length - 1;
  const below = (y: number) => {
    let [low, high] = [0, count];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((tops[middle] ?? 0) < y) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  // The row before the first that begins in view is in view if it does not end where the view begins.
  const first = below(-top + 1) - 1;
  return [Math.max(0, (tops[first + 1] ?? 0) <= -top ? first + 1 : first), below(height - top)];
}
