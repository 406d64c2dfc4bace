import { deepEqual, equal } from "node:assert/strict";
import test from "node:test";
import { eventWords, fields, isPattern, people, selected, text, told, whose } from "../src/trail";
import { person } from "../src/words";

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
  const shown = { principal: "token:abcd1234", who: "ada@laptop" };
  deepEqual(
    [
      is(shown, "", "token abcd…"),
      is(shown, "", "ada@laptop"),
      is({ ...shown, event: "lock.broken" }, "", "ada@laptop"),
    ],
    [true, true, false],
  );
  const refused = { principal: null, owner: null, token: "abc", event: "sign_in.refused" };
  deepEqual([is(refused, "", "abc"), is(refused, "", "token:abc")], [true, true]);
});

test("A reading that finds nothing is left out, and whatever was refused to somebody is not", () => {
  const is = (more: object) => selected({ event: "request.refused", state: "a", ...more }, { kind: "", principal: "" });
  for (const error of ["unreadable_state", "no_resource", "no_such_version"]) {
    equal(is({ error, lock_id: null }), false, error);
    equal(is({ error, lock_id: "1", held_by: "token:x" }), true, error);
  }
  for (const error of ["not_allowed", "locked", "frozen", "serial_not_newer", "lock_not_matched", "base_changed"])
    equal(is({ error }), true, error);
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
  is({ ...restored, restored_from: "v3" }, "wrong subnets");
  is({ event: "state.undeleted", serial: 5, restored_from: "v4", reason: "still needed" }, "still needed");
  is({ event: "state.undeleted", serial: 5, restored_from: "v4" }, "");
  is(
    { event: "state.unfrozen", freeze: "f1", held_by: "Ada", reason: "the audit is over" },
    "frozen by Ada: the audit is over",
  );
  is({ event: "request.refused", error: "locked", held_by: "Ada" }, "locked by Ada");
  is({ event: "request.refused", error: "lock_not_matched", held_by: "Ada" }, "lock not matched, held by Ada");
  is({ event: "state.frozen", freeze: "f1", reason: "<b>" }, "<b>");
  is({ event: "lock.acquired", operation: "by ops", ...lock }, '"by ops"');
  is({ event: "request.refused", error: "serial_not_newer", status: 409 }, "serial not newer");
  is({ event: "request.refused", error: "not_allowed", status: 403 }, "the role or scope does not allow it");
  is({ event: "request.refused", error: "restore_undecided" }, "the outcome is unknown");
  is({ event: "request.failed", error: "ValueError" }, "a fault of Holdfast");
  is({ event: "sign_in.refused", reason: "wrong_audience" }, "wrong audience");
  is({ event: "state.frozen", reason: "wrong_audience" }, "wrong_audience");
  is({ event: "token.changed", token: "abcd1234", operation: "ObjectCreated:Put" }, "token abcd…, written");
  is({ event: "trust.changed", operation: "ObjectRemoved:DeleteMarkerCreated" }, "deleted");
  is({ event: "lock.released", ...lock }, "");
  equal(eventWords("lock.force_unlocked"), "Lock broken");
  deepEqual([isPattern("a/*"), isPattern("a/b")], [true, false]);
});

test("An event's actor has one name on the page, and no other's", () => {
  const [ci, ops] = ["token:ci123456", "token:ops12345"];
  const held = { lock_id: "1", who: "ci@runner-1" };
  const events = [
    { event: "lock.force_unlocked", principal: ops, held_by: ci, ...held },
    { event: "state.written", principal: ci, ...held },
    { event: "state.deleted", principal: ci },
  ];
  const names = (all: Record<string, unknown>[]) => all.map((event) => person(people(all)(event)));
  deepEqual(names(events), ["token ops1…", '"ci@runner-1"', '"ci@runner-1"']);
  equal(told(events[0] ?? {}, events), 'held by "ci@runner-1"');
  deepEqual(names([...events, { event: "state.read", principal: ops, owner: "Olga" }]).at(0), "Olga");
  const elsewhere = { event: "lock.acquired", principal: ci, who: "ci@runner-2" };
  deepEqual(names([...events, elsewhere]).slice(1), ["token ci12…", "token ci12…", "token ci12…"]);
  deepEqual(names([{ event: "sign_in.refused", principal: null, token: "abcd1234" }]), ["unknown"]);
});

test("An event's fields are texts: errors and reasons first, what is technical last", () => {
  deepEqual(fields({ status: 200, ...written, reason: "<b>", lineage: null }), [
    ["reason", "<b>"],
    ["owner", "Ada"],
    ["serial", "2"],
    ["status", "200"],
    ["event", "state.written"],
    ["principal", "token:abc"],
  ]);
  deepEqual([whose(written), whose({ subject: "repo" }), whose({})], ["token:abc", "repo", "unknown"]);
  equal(text({ more: { a: 1 } }, "more"), '{"a":1}');
});
