import { deepEqual, equal } from "node:assert/strict";
import test from "node:test";
import { follow } from "../src/api";

const taken = async (pages: { next: string | null }[]) => {
  const asked: (string | undefined)[] = [];
  let at = 0;
  for await (const _ of follow(async (cursor) => {
    asked.push(cursor);
    return pages[at++] ?? { next: null };
  }));
  return asked;
};

test("A list is followed until a page has no cursor", async () => {
  deepEqual(await taken([{ next: "a" }, { next: "b" }, { next: null }]), [undefined, "a", "b"]);
});

test("A list that does not go on is given up", async () => {
  const failed = await taken(Array.from({ length: 9 }, () => ({ next: "a" }))).catch((error) => error.message);
  equal(failed, "The API did not return the whole list");
});
