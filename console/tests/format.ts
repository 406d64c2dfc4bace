import { deepEqual, equal } from "node:assert/strict";
import test from "node:test";
import { ApiError } from "../src/api";
import { isOver, note, now } from "../src/clock";
import { ages, ago, bytes, counted, exactly } from "../src/format";
import { failure, nearest, words } from "../src/problems";

const NOON = Date.parse("2026-11-23T12:00:00Z");

test("An age has one unit, and so has the time to an end; a clock that is a little ahead is not one", () => {
  const shown = ["12:01:05", "12:00:05", "11:59:59", "11:58:01"].map((time) => ago(`2026-11-23T${time}Z`, NOON));
  deepEqual(shown, ["in 1 min", "5 s ago", "1 s ago", "1 min ago"]);
  equal(ago("2026-11-25T12:00:00Z", NOON), "in 2 d");
  equal(ages("2025-11-23T12:00:00Z", NOON), "365 d");
});

test("A size is told as the command prints it", () => {
  deepEqual([0, 999, 1000, 9_960, 123_456, 4_200_000, 5e6, 3e12].map(bytes), [
    "0\u00a0B",
    "999\u00a0B",
    "1\u00a0KB",
    "10\u00a0KB",
    "123.5\u00a0KB",
    "4.2\u00a0MB",
    "5\u00a0MB",
    "3000\u00a0GB",
  ]);
});

test("What is no time is shown as it is", () => equal(exactly("soon"), "soon"));

test("A time is followed by the form of the command, whatever the API's form is", () => {
  for (const time of ["2026-11-23T12:00:00Z", "2026-11-23 12:00:00.302+00:00"])
    equal(exactly(time).split("\n")[1], "(2026-11-23 12:00:00 UTC)");
});

test("A number agrees with what it counts", () => {
  deepEqual([counted(1, "state"), counted(5000, "state")], ["1 state", "5,000 states"]);
});

test("The clock follows the API's, and not its rounding to seconds", () => {
  const before = Date.now();
  equal(isOver("2000-01-01T00:00:00Z"), false, "its time is not known yet");
  note(new Date(before + 3_600_000).toUTCString());
  equal(Math.round((now() - before) / 3_600_000), 1);
  equal(isOver("2000-01-01T00:00:00Z"), true);
  note("no time");
  note(null);
  equal(Math.round((now() - before) / 3_600_000), 1);
  note(new Date().toUTCString());
  equal(Math.abs(now() - Date.now()) < 1500, true);
});

test("Every status has a title and says what to do", () => {
  for (const status of [0, 400, 401, 403, 404, 409, 413, 423, 429, 500, 502, 503]) {
    const { title, advice } = words(new ApiError(status, "", "The API's words.", 7));
    equal(title !== "" && advice !== "", true, String(status));
    equal(advice.includes("The API's words.") || status === 401 || status === 429, true, String(status));
    equal(advice.includes("in 7 s"), status === 429 || status === 503, String(status));
  }
});

test("A state that cannot be read is nobody's doing, and another look does not help", () => {
  for (const code of ["unreadable_state", "unreadable_version"]) {
    const { title, advice } = words(new ApiError(409, code, "It is of version 3 of the state format."));
    equal(title, "This cannot be read");
    equal(advice, "It is of version 3 of the state format.");
  }
});

test("A time in the API's words is told as everywhere", () => {
  const { advice } = words(new ApiError(404, "no_state", "It was deleted at 2026-11-23T12:00:00Z; write it again."));
  equal(advice, `It was deleted at ${exactly("2026-11-23T12:00:00Z")}; write it again.`);
});

test("A fault of the page is told as one", () => {
  equal(words(failure(new TypeError("x is undefined"))).advice.includes("x is undefined"), true);
});

test("The names that the API suggests are those of its message", () => {
  const missing = "There is no state 'network/prd'.";
  deepEqual(nearest(`${missing} The nearest names are: network/prod, network/dev.2.`), [
    "network/prod",
    "network/dev.2",
  ]);
  deepEqual([nearest(missing), nearest(`${missing} The name is declared, but has no state.`)], [[], []]);
});
