import { deepEqual, equal } from "node:assert/strict";
import test from "node:test";
import { compared, type Line, read } from "../src/lines";

const text = (value: unknown) => JSON.stringify(value);
const written = (lines: Line[]) => lines.map(({ sign, text }) => `${sign || " "} ${text}`);
const differing = (before: string | null, after: string | null) => written(compared(before, after));

test("A value on one line is shown before and after", () => {
  deepEqual(differing('"a"', '"b"'), ['− "a"', '+ "b"']);
  deepEqual(differing(null, "12"), ["+ 12"]);
  deepEqual(differing("true", null), ["− true"]);
  deepEqual(differing("[]", '"[]"'), ["− []", '+ "[]"']);
});

test("A line without letters that was added or removed, such as what follows the last line break, has a sign to see", () => {
  deepEqual(differing(text("a\nb\n"), text("a\nb")), ["  a", "  b", "− ↵"]);
});

test("JSON in a text is compared as JSON, and a comma that a later member brings is no difference", () => {
  const policy = (actions: string[]) => text(text({ Statement: [{ Action: actions, Effect: "Allow" }], Id: {} }));
  deepEqual(differing(policy(["s3:GetObject"]), policy(["s3:GetObject", "s3:PutObject"])), [
    "… 2 equal lines",
    "      {",
    '        "Action": [',
    '          "s3:GetObject",',
    '+         "s3:PutObject"',
    "        ],",
    '        "Effect": "Allow"',
    "      }",
    "… 3 equal lines",
  ]);
});

test("JSON keeps what its reader would change: large numbers, order, and members that occur twice", () => {
  const before = text('{"b":1,"a":12345678901234567890,"a":[]}');
  const after = text('{"b":1,"a":12345678901234567891,"a":[]}');
  deepEqual(differing(before, after), [
    "  {",
    '    "b": 1,',
    '−   "a": 12345678901234567890,',
    '+   "a": 12345678901234567891,',
    '    "a": []',
    "  }",
  ]);
});

test("Values that differ only in the white space of their JSON are shown as they are", () => {
  deepEqual(differing(text('{"a":1}'), text('{ "a": 1 }')), ['− "{\\"a\\":1}"', '+ "{ \\"a\\": 1 }"']);
});

test("Texts of several lines are compared by line, with commas", () => {
  deepEqual(differing(text("a\nb,\nc"), text("a\nb\nc\nd")), ["  a", "− b,", "+ b", "  c", "+ d"]);
  deepEqual(differing(null, text("a\nb")), ["+ a", "+ b"]);
});

test("The lines that differ are as few as can be", () => {
  const lines = (...all: string[]) => text(all.join("\n"));
  deepEqual(differing(lines("a", "b", "c", "d"), lines("b", "d", "e")), ["− a", "  b", "− c", "  d", "+ e"]);
});

test("Values too long to compare line by line are still told", () => {
  const numbers = (from: number) => text(Array.from({ length: 2000 }, (_, at) => String(from + at)).join("\n"));
  const lines = compared(numbers(0), numbers(5000));
  equal(lines.length, 201);
  deepEqual(lines.at(-1), { sign: "…", text: "3,800 more lines" });
  const both = (first: string, from: number) =>
    text([first, "both", ...JSON.parse(numbers(from)).split("\n")].join("\n"));
  equal(
    compared(both("a", 0), both("b", 5000)).every(({ sign }) => sign !== ""),
    true,
  );
  const [old, now] = compared(text("x".repeat(300_000)), text(`${"x".repeat(300_000)}y`));
  equal(old?.text.endsWith("(300,002 characters)") && old.text.length < 500, true);
  equal(now?.text.includes("xy"), true);
});

test("A long line is cut around its first difference", () => {
  const same = "x".repeat(1000);
  const [old, now] = compared(text(`${same}a${same}`), text(`${same}b${same}`));
  equal(old?.text.startsWith(`…${"x".repeat(40)}a`), true);
  equal(now?.text.startsWith(`…${"x".repeat(40)}b`), true);
  equal(now?.text.endsWith("… (2,003 characters)"), true);
});

test("No character of a value turns the page's lines around", () => {
  deepEqual(read(text("a\u202eb\nc\u0000\td")), ["a\\u202eb", "c\\u0000\td"]);
});
