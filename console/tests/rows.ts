import { deepEqual, equal } from "node:assert/strict";
import test from "node:test";
import PATTERNS from "../../tests/support/patterns.json";
import { covers, type Me, may, mayBreak, rolesWith } from "../src/me";
import { inView, matching, ordered, type State } from "../src/rows";

const state = (name: string, size: number | null = 1, since?: string): State =>
  ({ name, size, modified: null, deleted: false, lock: since ? { since } : null }) as State;
const names = (states: State[]) => states.map(({ name }) => name).join(" ");
const STATES = [state("b/Prod", 5), state("a/prod", null, "2026-02"), state("a/dev", 9, "2026-01"), state("c", 5)];

test("A filter takes every word, anywhere in the name, in small or capital letters", () => {
  equal(names(matching(STATES, "PROD")), "b/Prod a/prod");
  equal(names(matching(STATES, " prod  a/ ")), "a/prod");
  equal(matching(STATES, " "), STATES);
  equal(matching(STATES, ".*").length, 0);
});

test("States are ordered by name, size or last write, those without a value last, and locked ones on top", () => {
  equal(names(ordered(STATES, "name", false)), "a/dev a/prod b/Prod c");
  equal(names(ordered(STATES, "size", false)), "a/dev b/Prod c a/prod");
  equal(names(ordered(STATES, "name", true)), "a/dev a/prod b/Prod c");
  equal(names(ordered([...STATES, state("d", 7)], "size", true)), "a/dev a/prod d b/Prod c");
  const written = STATES.map((one, at) => ({ ...one, modified: at ? `2026-11-2${at}T12:00:00Z` : null }));
  equal(names(ordered(written, "modified", false)), "c a/dev a/prod b/Prod");
});

test("The rows in view are those between its edges", () => {
  deepEqual(inView(5000, 100, 1000, 40), [0, 23]);
  deepEqual(inView(5000, -4000, 1000, 40), [100, 125]);
  deepEqual(inView(10, -40_000, 1000, 40), [10, 10]);
  deepEqual(inView(0, 0, 1000, 40), [0, 0]);
});

test("A pattern of a scope covers as the API says", () => {
  for (const { pattern, name, covered } of PATTERNS) equal(covers(pattern, name), covered, `${pattern} ${name}`);
});

test("An action is allowed where the API says, and a lock may be broken where any or the own one may", () => {
  const own = { principal: "token:a" } as Parameters<typeof mayBreak>[2];
  const actions = [
    { action: "unlock", scope: ["web/*"], roles: [] },
    { action: "force_unlock", scope: ["app/*"], roles: ["cook", "chef"] },
    { action: "freeze", scope: [], roles: ["chef"] },
  ];
  const me = { principal: "token:a", may: actions } as unknown as Me;
  deepEqual([may(me, "force_unlock", "app/dev"), may(me, "force_unlock", "web/dev")], [true, false]);
  deepEqual([may(me, "unlock"), may(me, "freeze"), may(me, "read"), may(null, "unlock")], [true, false, false, false]);
  deepEqual([rolesWith(me, "force_unlock"), rolesWith(me, "read")], [["cook", "chef"], []]);
  deepEqual([mayBreak(me, "app/dev", { ...own, principal: "x" }), mayBreak(me, "web/dev", own)], [true, true]);
  deepEqual([mayBreak(me, "web/dev", { ...own, principal: "x" }), mayBreak(me, "dns", own)], [false, false]);
});
