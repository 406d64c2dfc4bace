import { deepEqual, equal } from "node:assert/strict";
import test from "node:test";
import { exactly } from "../src/format";
import { eventWords, fields, isPattern, people, rows, selected, text, told, whose } from "../src/trail";
import { person } from "../src/words";

const written = { id: "1", event: "state.written", principal: "token:abc", owner: "Ada", state: "a", serial: 2 };

test("Events are selected as by the command", () => {
  const is = (event: object, kind: string, principal = "") => selected({ ...written, ...event }, { kind, principal });
  deepEqual([is({}, ""), is({}, "writes"), is({}, "all")], [true, true, true]);
  equal(is({ event: "lock.acquired" }, "writes"), false);
  const probe = { state: "holdfast-doctor/1" };
  deepEqual([is(probe, ""), is(probe, "writes"), is(probe, "all")], [false, false, true]);
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
  const shown = { principal: "token:abcd1234efgh", who: "ada@laptop" };
  deepEqual(
    [
      is(shown, "", "token abcd1234…"),
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
  const is = (event: object, expected: string) => equal(told(event as Record<string, unknown>, []), expected);
  const lock = { lock_id: "4711", token: "abc", version_id: "v9" };
  is(
    { event: "state.written", operation: "OperationTypeApply", serial_before: 5, serial: 9, ...lock },
    "apply, serial 5 → 9",
  );
  is({ event: "state.written", operation: "state-push", serial: 1 }, "push, serial 1");
  const restored = { event: "state.restored", serial_before: 9, serial: 10, reason: "wrong subnets" };
  is({ ...restored, restored_from: "v4", restored_serial: 4 }, "serial 9 → 10, restored from serial 4: wrong subnets");
  is({ ...restored, restored_from: "v3" }, "serial 9 → 10: wrong subnets");
  is(
    { event: "state.undeleted", operation: "undelete", serial: 5, restored_from: "v3", reason: "still needed" },
    "serial 5: still needed",
  );
  is(
    { event: "state.unfrozen", freeze: "f1", held_by: "Ada", reason: "the audit is over" },
    "frozen by Ada: the audit is over",
  );
  is({ event: "state.unchanged", freeze: "f1", held_by: "Ada" }, "frozen already by Ada");
  is({ ...restored, event: "state.unchanged", restored_from: "v4", restored_serial: 4 }, "serial 10: wrong subnets");
  is({ event: "states.listed", freeze: "f1", held_by: "Ada" }, "frozen by Ada");
  is({ event: "session.created", trust: "ci" }, "trust ci");
  is({ event: "state.deleted", trust: "ci" }, "");
  is({ event: "request.refused", error: "locked", held_by: "Ada" }, "locked by Ada");
  is({ event: "request.refused", error: "lock_not_matched", held_by: "Ada" }, "lock not matched, held by Ada");
  is({ event: "state.frozen", freeze: "f1", reason: "<b>" }, "<b>");
  is({ event: "lock.acquired", operation: "by ops", ...lock }, '"by ops"');
  is({ event: "request.refused", error: "serial_not_newer", status: 409 }, "serial not newer");
  is({ event: "request.refused", error: "not_allowed", status: 403 }, "the role or scope does not allow it");
  is({ event: "request.refused", error: "restore_undecided" }, "the outcome is unknown");
  is({ event: "request.failed", error: "ValueError" }, "a fault of Holdfast");
  is({ event: "sign_in.refused", reason: "wrong_audience" }, "wrong audience");
  is({ event: "sign_in.refused", error: "not_allowed", reason: "not_trusted" }, "not trusted");
  is({ event: "state.frozen", reason: "wrong_audience" }, "wrong_audience");
  is(
    { event: "token.changed", token: "abcd1234ef", operation: "ObjectCreated:Put" },
    "token abcd1234…, created or changed",
  );
  is({ event: "trust.changed", operation: "ObjectRemoved:DeleteMarkerCreated" }, "deleted");
  is({ event: "sign_in.failed", error: "IssuerUnreachable" }, "issuer unreachable");
  is({ event: "sign_in.failed", error: "Undecided" }, "the outcome is unknown");
  is(
    { event: "replica.failed", operation: "Replication:OperationFailedReplication", reason: "DstBucketNotFound" },
    "not copied: dst bucket not found",
  );
  is({ event: "lock.released", ...lock }, "");
  deepEqual(["lock.force_unlocked", "state.written", "sign_in.refused"].map(eventWords), [
    "Lock broken",
    "State written",
    "Sign-in refused",
  ]);
  deepEqual([isPattern("a/*"), isPattern("a/b")], [true, false]);
});

test("An event's actor has the owner that any event tells, else the machine that its lock tells, and no other", () => {
  const [ci, ops] = ["token:ci1234567", "token:ops123456"];
  const held = { lock_id: "1", who: "ci@runner-1" };
  const events = [
    { event: "lock.force_unlocked", principal: ops, held_by: ci, ...held },
    { event: "state.written", principal: ci, ...held },
    { event: "state.deleted", principal: ci },
  ];
  const names = (all: Record<string, unknown>[]) => all.map((event) => person(people(all)(event)));
  deepEqual(names(events), ["token ops12345…", '"ci@runner-1"', "token ci123456…"]);
  equal(told(events[0] ?? {}, events), 'held by "ci@runner-1"');
  deepEqual(names([...events, { event: "state.read", principal: ops, owner: "Olga" }]).at(0), "Olga");
  const elsewhere = { event: "lock.acquired", principal: ci, who: "ci@runner-2" };
  deepEqual(names([...events, elsewhere]).slice(1), ['"ci@runner-1"', "token ci123456…", '"ci@runner-2"']);
  const release = { event: "lock.released", lock_id: "1" };
  const released = [
    { ...release, principal: ci },
    { ...release, principal: ops },
    { ...release, lock_id: "2", principal: ci },
  ];
  deepEqual(names([...released, elsewhere, ...events]).slice(0, 3), [
    '"ci@runner-1"',
    "token ops12345…",
    "token ci123456…",
  ]);
  deepEqual(names([{ event: "sign_in.refused", principal: null, token: "abcd1234" }]), ["unknown"]);
});

test("The freeze of a pattern is one row, as often as it is repeated, and so is its end", () => {
  const frozen = (state: string, more: object = {}) => ({
    id: state,
    event: "state.frozen",
    principal: "token:a",
    freeze: "f1",
    state,
    reason: "release 8",
    ...more,
  });
  const events = [
    { id: "9", event: "state.unfrozen", principal: "token:a", freeze: "f1", state: "a/1" },
    frozen("a/2", { id: "8" }),
    frozen("a/2"),
    frozen("a/1"),
    frozen("a/*"),
    frozen("b", { freeze: "f2" }),
    { id: "7", event: "lock.acquired", freeze: "f1", state: "a/1" },
    frozen("a/3", { principal: "token:b" }),
  ];
  deepEqual(
    rows(events).map(({ event, states }) => [event.state, states]),
    [
      ["a/1", []],
      ["a/*", ["a/2", "a/1"]],
      ["b", []],
      ["a/1", []],
      ["a/3", []],
    ],
  );
  equal(told(events[4] ?? {}, events, 2), "2 states: release 8");
});

test("An event's fields are told in words: errors and reasons first, what is technical last", () => {
  deepEqual(fields({ status: 200, ...written, reason: "<b>", lineage: null, source_ip: "::1", lock_id: "l" }), [
    ["Reason", "<b>"],
    ["Owner", "Ada"],
    ["Serial", "2"],
    ["Status", "200"],
    ["Event", "state.written"],
    ["Principal", "token:abc"],
    ["Source IP", "::1"],
    ["Lock ID", "l"],
  ]);
  const until = "2026-12-01T12:00:00Z";
  deepEqual(fields({ freeze: "f1", until, held_by: "Ada", who: "ada@laptop", source: "oidc" }), [
    ["Until", exactly(until)],
    ["Held by", "Ada"],
    ["Client says", "ada@laptop"],
    ["Freeze ID", "f1"],
    ["Signed in with", "oidc"],
  ]);
  deepEqual([whose(written), whose({ subject: "repo" }), whose({})], ["token:abc", "repo", "unknown"]);
  equal(text({ more: { a: 1 } }, "more"), '{"a":1}');
});
