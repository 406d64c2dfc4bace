import { deepEqual, equal } from "node:assert/strict";
import test from "node:test";
import PATTERNS from "../../tests/support/patterns.json";
import { covers, type Me, may, mayBreak, rolesFor } from "../src/me";
import { inGroups, inView, matching, NEEDS, ordered, orderOf, places, type Row, type State } from "../src/rows";

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

test("A head sorts states one way and the other; those without a value come last, equal ones by name", () => {
  equal(names(ordered(STATES, "name")), "a/dev a/prod b/Prod c");
  equal(names(ordered(STATES, "-name")), "c b/Prod a/prod a/dev");
  equal(names(ordered(STATES, "size")), "a/dev b/Prod c a/prod");
  equal(names(ordered(STATES, "-size")), "b/Prod c a/dev a/prod");
  equal(names(ordered(STATES, "lock")), "a/dev a/prod b/Prod c");
  equal(names(ordered(STATES, "-lock")), "a/prod a/dev b/Prod c");
  const written = STATES.map((one, at) => ({ ...one, modified: at ? `2026-11-2${at}T12:00:00Z` : null }));
  equal(names(ordered(written, "modified")), "c a/dev a/prod b/Prod");
  equal(names(ordered(written, "-modified")), "a/prod a/dev c b/Prod");
});

test("What an address says about the order is a head's, or by name", () => {
  deepEqual(orderOf("modified"), { by: "modified", descends: true });
  deepEqual(orderOf("-modified"), { by: "modified", descends: false });
  for (const text of ["", "constructor", "-", "__proto__"]) deepEqual(orderOf(text), { by: "name", descends: false });
});

test("States that need somebody are old locks and freezes", () => {
  const at = Date.parse("2026-11-20T14:00:00Z");
  const frozen = { ...state("f", 1, "2026-01-01T00:00:00Z") };
  frozen.lock = { ...frozen.lock, freeze: { id: "f" } } as State["lock"];
  const all = [state("old", 1, "2026-11-20T12:59:59Z"), state("young", 1, "2026-11-20T13:00:01Z"), frozen, state("a")];
  equal(names(all.filter((one) => NEEDS.old(one, at))), "old");
  equal(names(all.filter(NEEDS.frozen)), "f");
});

test("States are in groups by the first segment, large groups folded until somebody opens them", () => {
  const shown = (rows: Row[]) => rows.map((row) => ("group" in row ? `${row.group}${row.count}` : row.state.name));
  const many = Array.from({ length: 26 }, (_, number) => state(`m/${number}`));
  const all = [...ordered(STATES, "name"), ...many];
  deepEqual(shown(inGroups(all, new Map(), false)), ["c", "a/2", "a/dev", "a/prod", "b/1", "b/Prod", "m/26"]);
  equal(inGroups(all, new Map([["m/", true]]), false).length, 33);
  deepEqual(shown(inGroups(all, new Map([["a/", false]]), false)).slice(0, 3), ["c", "a/2", "b/1"]);
  equal(inGroups(all, new Map([["a/", false]]), true).length, 33);
});

test("The rows in view are those between its edges", () => {
  const rows = (count: number): Row[] => Array.from({ length: count }, () => ({ state: state("a") }));
  const many = places(rows(5000), 40, 30);
  deepEqual(inView(many, 100, 1000), [0, 23]);
  deepEqual(inView(many, -4000, 1000), [100, 125]);
  deepEqual(inView(many, -4001, 1000), [100, 126]);
  deepEqual(inView(places(rows(10), 40, 30), -40_000, 1000), [10, 10]);
  deepEqual(inView(places([], 40, 30), 0, 1000), [0, 0]);
  const headed: Row[] = [{ group: "a/", count: 2, isOpen: true }, ...rows(2)];
  deepEqual(places(headed, 40, 30), [0, 30, 70, 110]);
  deepEqual(inView(places(headed, 40, 30), -30, 40), [1, 2]);
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
  deepEqual([rolesFor(me, "force_unlock"), rolesFor(me, "read")], ["cook or chef", ""]);
  deepEqual([mayBreak(me, "app/dev", { ...own, principal: "x" }), mayBreak(me, "web/dev", own)], [true, true]);
  deepEqual([mayBreak(me, "web/dev", { ...own, principal: "x" }), mayBreak(me, "dns", own)], [false, false]);
});
