import { deepEqual, equal } from "node:assert/strict";
import test from "node:test";
import type { Schemas } from "../src/api";
import { alike, neighbours, range, tally } from "../src/changes";
import * as say from "../src/words";

type Resource = Schemas["ResourceChange"];

const CHANGE: Resource = {
  address: "t.n",
  change: "changed",
  moved_from: null,
  type: "t",
  tainted: null,
  provider: null,
  attributes: [],
};
const one = (address: string, more: Partial<Resource> = {}): Resource => ({ ...CHANGE, address, ...more });
const part = (path: string) => ({ path, change: "changed" as const, before: null, after: null, sensitive: false });
const addresses = (groups: Resource[][]) => groups.map((group) => group.map(({ address }) => address));

test("Three instances of a resource that changed alike are one group, others are by themselves", () => {
  const keys = ["0", "1", '"a]b[\\"0"'];
  const instances = keys.map((key) => one(`module.m[${key}].t.n`, { attributes: [part("size")] }));
  const others = [one("module.m[4].t.n"), one("module.m[5].t.o", { attributes: [part("size")] })];
  deepEqual(addresses(alike([...instances, ...others])), [
    instances.map(({ address }) => address),
    ["module.m[4].t.n"],
    ["module.m[5].t.o"],
  ]);
  deepEqual(addresses(alike(instances.slice(1))), [["module.m[1].t.n"], ['module.m["a]b[\\"0"].t.n']]);
});

test("What is not alike is not folded", () => {
  const plain = ["t.n[0]", "t.n[1]", "t.n[2]"].map((address) => one(address, { attributes: [part("size")] }));
  equal(alike(plain).length, 1);
  const others: Partial<Resource>[] = [
    { change: "replaced" },
    { tainted: true },
    { moved_from: "t.m[2]" },
    { provider: { before: "p", after: "q" } },
    { attributes: [part("name")] },
    { attributes: [{ ...part("size"), change: "added" }] },
    { attributes: [{ ...part("size"), sensitive: true }] },
  ];
  for (const other of others)
    equal(alike([...plain.slice(1), { ...one("t.n[0]"), attributes: [part("size")], ...other }]).length, 3);
});

test("A range names its first and its last instance", () => {
  equal(range(["t.n[6]", "t.n[7]", "t.n[8]"]), "t.n[6] … [8]");
  equal(range(['t.n["aa"]', 't.n["ab"]']), 't.n["aa"] … ["ab"]');
  equal(range(["module.m[0].t.n", "module.m[1].t.n"]), "module.m[0].t.n … [1].t.n");
});

test("A summary counts what there is, in a fixed order", () => {
  const summary = { outputs: 2, changed: 6, added: 3, removed: 0, moved: 1, replaced: 0 };
  deepEqual(tally(summary), [
    ["added", 3],
    ["moved", 1],
    ["changed", 6],
    ["output", 2],
  ]);
  deepEqual(tally({ added: 0 }), []);
});

test("The differences before and after lead along the history, whichever two versions are compared", () => {
  const versions = ["d", "c", "b", "a"].map((version) => ({ version })) as Schemas["Version"][];
  const around = (from: string, to: string) => {
    const { before, after } = neighbours(versions, from, to);
    return [before, after].map((step) => step && step.from.version + step.to.version);
  };
  deepEqual(around("b", "c"), ["ab", "cd"]);
  deepEqual(around("c", "a"), [undefined, "cd"]);
  deepEqual(around("c", "d"), ["bc", undefined]);
  deepEqual(around("x", "d"), [undefined, undefined]);
});

test("A resource says what its sign does not", () => {
  equal(say.resource(one("t.n")), "");
  const provider = { before: "p", after: "q" };
  const told = one("t.n", { change: "replaced", moved_from: "t.m", tainted: false, provider });
  equal(say.resource(told), "replaced, moved from t.m, no longer tainted, provider p → q");
  equal(say.resource(one("t.n", { tainted: true })), "now tainted: the next apply replaces it");
  deepEqual([null, true, false].map(say.marked), ["", "now sensitive", "no longer sensitive"]);
});
