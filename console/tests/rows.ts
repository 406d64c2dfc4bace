import { deepEqual, equal } from "node:assert/strict";
import test from "node:test";
import { covers, has } from "../src/me";
import { drawn, marked, matching, ordered, type State } from "../src/rows";

const state = (name: string, size: number | null = 1, since?: string): State =>
  ({ name, size, modified: null, deleted: false, lock: since ? { since } : null }) as State;
const names = (states: State[]) => states.map(({ name }) => name).join(" ");
const STATES = [state("b/Prod", 5), state("a/prod", null, "2026-02"), state("a/dev", 9, "2026-01"), state("c", 5)];
const PLAIN = { by: "name", down: false, locked: false } as const;

test("A filter takes every word, anywhere in the name, in small or capital letters", () => {
  equal(names(matching(STATES, "PROD")), "b/Prod a/prod");
  equal(names(matching(STATES, " prod  a/ ")), "a/prod");
  equal(matching(STATES, " "), STATES);
  equal(matching(STATES, ".*").length, 0);
});

test("States are ordered by a column, those without a value last, equal ones by name", () => {
  equal(names(ordered(STATES, PLAIN)), "a/dev a/prod b/Prod c");
  equal(names(ordered(STATES, { ...PLAIN, by: "size" })), "b/Prod c a/dev a/prod");
  equal(names(ordered(STATES, { ...PLAIN, by: "size", down: true })), "a/dev b/Prod c a/prod");
  equal(names(ordered(STATES, { ...PLAIN, by: "lock" })), "a/dev a/prod b/Prod c");
  equal(names(ordered(STATES, { by: "name", down: true, locked: true })), "a/prod a/dev c b/Prod");
});

test("The rows in view are drawn, and some above and below", () => {
  deepEqual(drawn(5000, 100, 1000, 40, 5), [0, 28]);
  deepEqual(drawn(5000, -4000, 1000, 40, 5), [95, 130]);
  deepEqual(drawn(10, -40_000, 1000, 40, 5), [10, 10]);
  deepEqual(drawn(0, 0, 1000, 40, 5), [0, 0]);
});

test("What was typed is marked wherever it stands", () => {
  const parts = marked("net/Prod/net", "net prod");
  equal(parts.map(([text, isTyped]) => (isTyped ? `[${text}]` : text)).join(""), "[net]/[Prod]/[net]");
  equal(parts.map(([text]) => text).join(""), "net/Prod/net");
  deepEqual(marked("aaa", "aa"), [["aaa", true]]);
  deepEqual(marked("x", ""), [["x", false]]);
});

test("A pattern of a scope covers as the API says", () => {
  for (const [pattern, name, is] of [
    ["*", "a/b/c", true],
    ["network/*", "network/prod/eu", true],
    ["network/*", "network", false],
    ["*/prod", "network/prod", true],
    ["*/prod", "network/eu/prod", false],
    ["net*", "network", true],
    ["net*", "network/prod", false],
    ["a.b", "axb", false],
    ["app-*/dev", "app-1/dev", true],
  ] as const) {
    equal(covers(pattern, name), is, `${pattern} ${name}`);
  }
});

test("A role counts where its grant covers the state", () => {
  const me = { grants: [{ role: "maintainer", scope: ["app/*"] }] } as Parameters<typeof has>[0];
  deepEqual([has(me, ["maintainer"], "app/dev"), has(me, ["maintainer"], "web/dev")], [true, false]);
  deepEqual([has(me, ["maintainer"]), has(me, ["reader"], "app/dev"), has(null, ["maintainer"])], [true, false, false]);
});
