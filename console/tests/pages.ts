import { deepEqual, equal } from "node:assert/strict";
import test from "node:test";
import type { Schemas } from "../src/api";
import { bars, grouped, HEIGHT, summary, WIDTH } from "../src/shape";
import * as say from "../src/words";

const LOCK: Schemas["Lock"] = {
  id: "1",
  version: "v",
  who: "bea@laptop",
  principal: "token:b",
  owner: null,
  operation: "apply",
  info: "",
  since: "2026-11-20T14:00:00Z",
  freeze: null,
};
const FREEZE = { id: "f", reason: "audit", until: null, by: "token:c", since: LOCK.since, ended: false };
const STATE = {
  version: "v2",
  serial: 8,
  principal: "token:b",
  owner: null,
  who: null,
  operation: "apply",
  lock: LOCK,
};
const now = (more: object = {}) => ({ ...STATE, ...more }) as unknown as Schemas["StateDescription"];

test("Writers and holders are named as the command names them", () => {
  equal(
    say.identity({ principal: "token:b", owner: "bea", who: "bea@laptop" }),
    'bea (token:b) (client says "bea@laptop")',
  );
  equal(say.identity({ principal: "token:b", owner: null, who: "bea@laptop" }), 'token:b (client says "bea@laptop")');
  equal(say.identity({ principal: null, owner: null, who: null }), "another program");
  equal(say.identity({ ...LOCK, owner: "bea" }), 'bea (token:b) (client says "bea@laptop")');
  equal(say.identity({ who: "", principal: null, owner: null }), "another program");
  equal(say.lockWords(LOCK), 'locked by "bea@laptop" for apply');
  equal(say.lockWords({ ...LOCK, owner: "bea" }), "locked by bea for apply");
  equal(say.lockWords(LOCK, say.identity), 'locked by token:b (client says "bea@laptop") for apply');
  equal(say.lockWords({ ...LOCK, freeze: FREEZE }), "frozen by token:c: audit");
  equal(say.lockWords({ ...LOCK, freeze: { ...FREEZE, ended: true } }), "no longer frozen: audit");
});

test("People are called by name: the owner, else what the client says, in quotes, else the principal", () => {
  equal(say.person({ principal: "token:b", owner: "bea", who: "bea@laptop" }), "bea");
  equal(say.person({ principal: "token:b", owner: null, who: "bea@laptop" }), '"bea@laptop"');
  equal(say.person({ principal: "token:b", owner: "", who: "token:b" }), "token:b");
  equal(say.person({ principal: "token:b", who: 'olga" by ops\n\u202e' }), '"olga\\" by ops??"');
  equal(say.person({ principal: null, owner: "bea", who: "" }), "another program");
  equal(say.person({ principal: "token:3i0qjpfyqw9ppzgfsvun" }), "token 3i0qjpfy…");
  const role = "arn:aws:sts::123456789012:assumed-role";
  equal(say.person({ principal: `${role}/Deployer/ada` }), "Deployer/ada");
  equal(
    say.person({ principal: `${role}/AWSReservedSSO_Read_Only_1a2b3c4d5e6f7a8b/ada@corp.com` }),
    "Read_Only/ada@corp.com",
  );
  equal(say.identity({ principal: `${role}/Deployer/ada` }), `${role}/Deployer/ada`);
  equal(
    say.person({ principal: "oidc:https://ci.example#repo:acme/app:ref:refs/heads/main" }),
    "repo:acme/app:ref:refs/heads/main",
  );
  equal(say.person({ principal: "oidc:https://ci#token:abcdefgh" }), "oidc:https://ci#token:abcdefgh");
  deepEqual(say.lockedBy({ ...LOCK, owner: "bea", freeze: FREEZE }), { principal: "token:c", owner: "bea" });
});

test("An owner is taken from the others of the same principal, and a machine is not", () => {
  const known = say.acquainted([
    { principal: "token:b", owner: null, who: "bea@laptop" },
    { principal: "token:c", owner: "cleo", who: "c@1" },
    { principal: "token:c", owner: "an earlier name", who: "c@2" },
    { principal: null, owner: "dan", who: "dan@laptop" },
  ]);
  const names = ["token:b", "token:c", "token:d", null].map((principal) => say.person(known({ principal })));
  deepEqual(names, ["token:b", "cleo", "token:d", "another program"]);
});

test("A sentence that ends with a shortened name has no full stop behind it", () => {
  deepEqual([say.ended("by bea"), say.ended("by token abcd…")], ["by bea.", "by token abcd…"]);
});

test("A message of the API calls the caller by name", () => {
  const message = "The scope of $& bea (token:b) does not cover the state 'dns'.";
  equal(
    say.namedIn(message, { principal: "token:b", owner: "$& bea" }),
    "The scope of $& bea does not cover the state 'dns'.",
  );
  equal(say.namedIn(message, { principal: "token:b", owner: null }), message);
  equal(
    say.namedIn("of the token abcd1234ef.", { principal: "token:abcd1234ef", owner: null }),
    "of the token abcd1234….",
  );
  equal(say.namedIn(message, null), message);
});

test("An operation is Terraform's word for people, and never a name of this program", () => {
  const known = ["OperationTypeApply", "OperationTypePlan", "state-push", "restore", "constructor"];
  deepEqual(known.map(say.operationWords), ["apply", "plan", "push", "restore", "constructor"]);
  equal(say.operationWords(null), "");
  deepEqual(["OperationTypeApply", "by ops"].map(say.inSentence), ["apply", '"by ops"']);
});

test("A client that imitates a principal is told apart from it", () => {
  const who = 'ops" by Olga (token:ops)\n\u202e';
  const said = '(client says "ops\\" by Olga (token:ops)??")';
  equal(say.identity({ who, principal: "token:b", owner: "bea" }), `bea (token:b) ${said}`);
  equal(say.identity({ who, principal: null, owner: null }), `another program ${said}`);
  equal(say.identity({ who, principal: "token:b", owner: null }), `token:b ${said}`);
  equal(say.lockWords({ ...LOCK, who, operation: who }), `locked by ${said.slice(13, -1)} for ${said.slice(13, -1)}`);
  equal(say.identity({ who: "token:b", principal: "token:b", owner: null }), "token:b");
});

test("A refusal says what somebody else did, and that nothing happened", () => {
  const refusal = (code: string, more?: object) => say.refusal(code, "As the API says.", "Nothing.", now(more), "v1");
  equal(refusal("base_changed"), "Meanwhile token:b wrote serial 8 (apply). Nothing. Above is what would happen now.");
  equal(refusal("base_changed", { version: null }).startsWith("Meanwhile another user deleted the state."), true);
  equal(refusal("lock_not_matched").includes('locked by "bea@laptop" for apply.'), true);
  equal(refusal("lock_not_matched", { lock: null }), "The lock has changed. Nobody holds the lock any more. Nothing.");
  equal(refusal("locked").endsWith("Nothing. Wait, or break the lock if nobody uses it."), true);
  equal(refusal("frozen", { lock: null }), "As the API says. Nothing.");
  equal(refusal("unlock_undecided"), "As the API says.");
});

test("Who was faster is told as the audit trail says it", () => {
  const events = [
    { event: "lock.acquired", lock_id: "1", principal: "token:b", owner: null },
    { event: "lock.force_unlocked", lock_id: "1", principal: "token:c", owner: "cleo" },
    { event: "state.unfrozen", freeze: "f", principal: "token:d", owner: null },
  ];
  equal(say.remover(events, "1"), "cleo removed it");
  equal(say.remover(events, "f"), "token:d removed it");
  equal(say.remover(events, "2"), "its holder, another user or an earlier try of yours removed it");
});

test("A reason is one that the command sends", () => {
  equal(say.reasonProblem("incident 4711"), "");
  equal(say.reasonProblem(" ", true), "");
  equal(say.reasonProblem("holdfast_0123456789abcdefghij", true) !== "", true);
  for (const reason of ["", "  ", "holdfast_0123456789abcdefghij", "eyJhbGciOi.eyJzdWIi.x", "a".repeat(40)])
    equal(say.reasonProblem(reason) !== "", true, reason);
});

test("The freeze of a pattern tells what it does not hold yet, and whose it was before", () => {
  const wanted = { pattern: "a/*", reason: "audit", until: null, id: "1" };
  const placed = { ...wanted, by: "token:c", owner: "cleo", since: null, liftable: true };
  const holds = "The freeze is complete. It includes states that are created later.";
  equal(say.frozenPattern(wanted, placed, 2, []), `a/* is frozen, with 2 states. ${holds}`);
  equal(say.frozenPattern(wanted, { ...placed, id: "2" }, 0, []), `a/* was frozen already by cleo: audit. ${holds}`);
  equal(say.frozenPattern(wanted, placed, 1, ["a/b"]).includes("Still locked: a/b."), true);
});

test("A freeze ends in whole seconds of UTC, by the API's clock", () => {
  const at = Date.parse("2026-11-20T14:00:00.789Z");
  equal(say.until("8", at), "2026-11-20T22:00:00Z");
  equal(say.until("never", at), null);
});

test("A command ID is 32 hexadecimal digits, each time others", () => {
  const ids = [say.commandId(), say.commandId()];
  equal(ids.every((id) => /^[0-9a-f]{32}$/.test(id)) && ids[0] !== ids[1], true);
});

const version = (seconds: number, size: number) => ({ time: new Date(seconds * 1000).toISOString(), size });

test("A bar is where its time is, beside the one before it and within the plot, and its height begins at zero", () => {
  const shown = (...versions: { time: string; size: number }[]) => bars(versions);
  deepEqual(shown(version(0, 50), version(50, 25), version(100, 100)), [
    [0, HEIGHT / 2],
    [(WIDTH - 8) / 2, HEIGHT / 4],
    [WIDTH - 8, HEIGHT],
  ]);
  deepEqual(
    shown(version(0, 1), version(0, 1), version(100, 1)).map(([x]) => x),
    [0, 8, WIDTH - 8],
  );
  deepEqual(
    shown(version(7, 1), version(7, 1)).map(([x]) => x),
    [0, 8],
  );
});

test("The sizes of the versions are told without saying one twice", () => {
  const told = (...sizes: number[]) => summary(sizes.map((size) => version(0, size)));
  equal(told(1_000, 9_000, 4_000), "3 versions of up to 9\u00a0KB");
  equal(told(2_101, 2_102, 2_103), "3 versions of 2.1\u00a0KB");
  equal(told(900), "1 version of 900\u00a0B");
});

test("Resources are grouped by module and type, the root module first and data sources last", () => {
  const one = (module: string | null, mode: "managed" | "data", type: string, name: string) =>
    ({ address: name, module, mode, type, name, provider: "p", tainted: false, deposed: null }) as const;
  const all = [one("module.b", "managed", "t", "1"), one(null, "data", "a", "2"), one(null, "managed", "z", "3")];
  deepEqual(
    grouped([...all, one("module.b", "managed", "t", "4")]).map(({ module, count, types }) => [
      module,
      count,
      types.map(({ type, providers, resources }) => [type, providers, resources.map(({ name }) => name)]),
    ]),
    [
      [
        "",
        2,
        [
          ["z", ["p"], ["3"]],
          ["data a", ["p"], ["2"]],
        ],
      ],
      ["module.b", 2, [["t", ["p"], ["1", "4"]]]],
    ],
  );
});
