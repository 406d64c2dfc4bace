import { deepEqual, equal } from "node:assert/strict";
import test from "node:test";
import { fields, selected, text, whose } from "../src/trail";

const written = { id: "1", event: "state.written", principal: "token:abc", owner: "Ada", state: "a", serial: 2 };

test("Events are selected as by the command", () => {
  const is = (event: object, kind: string, principal = "") => selected({ ...written, ...event }, { kind, principal });
  deepEqual([is({}, ""), is({}, "writes"), is({}, "all")], [true, true, true]);
  equal(is({ event: "lock.acquired" }, "writes"), false);
  const ofNobody = [
    { event: "states.listed" },
    { event: "request.refused", error: "no_state" },
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

test("An event's fields are texts: errors first, what is technical apart", () => {
  const { told, rest } = fields({ ...written, reason: "<b>", status: 200, lineage: null });
  deepEqual(told, [
    ["reason", "<b>"],
    ["serial", "2"],
  ]);
  deepEqual(rest, [["status", "200"]]);
  deepEqual([whose(written), whose({ subject: "repo" }), whose({})], ["token:abc", "repo", "unknown"]);
  equal(text({ more: { a: 1 } }, "more"), '{"a":1}');
});
