import { deepEqual, equal } from "node:assert/strict";
import test from "node:test";
import { fields, selected, text, told, whose } from "../src/trail";

const written = { id: "1", event: "state.written", principal: "token:abc", owner: "Ada", state: "a", serial: 2 };

test("Events are selected as by the command", () => {
  const is = (event: object, kind: string, principal = "") => selected({ ...written, ...event }, { kind, principal });
  deepEqual([is({}, ""), is({}, "writes"), is({}, "all")], [true, true, true]);
  equal(is({ event: "lock.acquired" }, "writes"), false);
  const ofNobody = [
    { event: "states.listed" },
    { event: "request.refused", error: "no_state", serial: null },
    { state: "holdfast-doctor/4f1c" },
  ];
  for (const event of ofNobody) deepEqual([is(event, ""), is(event, "all")], [false, true]);
  equal(is({ event: "request.refused", error: "locked" }, ""), true);
  deepEqual(
    [is({}, "", "abc"), is({}, "", "token:abc"), is({}, "", "Ada"), is({}, "", "ab")],
    [true, true, true, false],
  );
  const refused = { principal: null, owner: null, token: "abc", event: "sign_in.refused" };
  deepEqual([is(refused, "", "abc"), is(refused, "", "token:abc")], [true, true]);
});

test("A refused reading is left out, and a refused write or lock is not", () => {
  const is = (more: object) => selected({ event: "request.refused", state: "a", ...more }, { kind: "", principal: "" });
  for (const error of ["not_allowed", "unreadable_state", "no_resource", "no_such_version"]) {
    equal(is({ error, lock_id: null }), false, error);
    equal(is({ error, lock_id: "1", held_by: "token:x" }), true, error);
  }
  for (const error of ["locked", "frozen", "serial_not_newer", "lock_not_matched", "base_changed"])
    equal(is({ error }), true, error);
  equal(selected({ event: "request.refused", error: "not_allowed" }, { kind: "all", principal: "" }), true);
});

test("An event is told in words, and its IDs are not among them", () => {
  const is = (event: object, expected: string) => equal(told(event as Record<string, unknown>, [old]), expected);
  const old = { event: "state.written", version_id: "v4", serial: 4 };
  const lock = { lock_id: "4711", token: "abc", version_id: "v9" };
  is(
    { event: "state.written", operation: "OperationTypeApply", serial_before: 5, serial: 9, ...lock },
    "apply, serial 5 → 9",
  );
  is({ event: "state.written", operation: "state-push", serial: 1 }, "push, serial 1");
  const restored = { event: "state.restored", serial_before: 9, serial: 10, reason: "wrong subnets" };
  is({ ...restored, restored_from: "v4" }, "restored from serial 4: wrong subnets");
  is({ ...restored, restored_from: "v3" }, "restored from an earlier version: wrong subnets");
  is({ event: "state.frozen", freeze: "f1", reason: "<b>" }, "frozen: <b>");
  is({ event: "lock.acquired", operation: "by ops", ...lock }, '"by ops"');
  is({ event: "request.refused", error: "serial_not_newer", status: 409 }, "serial not newer");
  is({ event: "lock.released", ...lock }, "");
});

test("An event's fields are texts: errors and reasons first, what is technical last", () => {
  deepEqual(fields({ status: 200, ...written, reason: "<b>", lineage: null }), [
    ["reason", "<b>"],
    ["serial", "2"],
    ["status", "200"],
  ]);
  deepEqual([whose(written), whose({ subject: "repo" }), whose({})], ["token:abc", "repo", "unknown"]);
  equal(text({ more: { a: 1 } }, "more"), '{"a":1}');
});
