import { deepEqual, equal } from "node:assert/strict";
import test from "node:test";
import { onSession, session, signIn, signOut, tokenIn, whyEnded } from "../src/session";
import { kept } from "./browser";

test("A token is found in what people paste", () => {
  for (const [text, token] of [
    [" abc.def\n", "abc.def"],
    ["Bearer abc.def", "abc.def"],
    ["export TF_HTTP_USERNAME='abc'\nexport TF_HTTP_PASSWORD='def'", "abc.def"],
    ["export TF_HTTP_USERNAME='abc'export TF_HTTP_PASSWORD='def'", "abc.def"],
    ["TF_HTTP_USERNAME=oidc TF_HTTP_PASSWORD=e30.e30.sig", "e30.e30.sig"],
    ["export TF_TOKEN_api_example='abc.def'", "abc.def"],
    ["TF_HTTP_USERNAME=abc TF_HTTP_PASSWORD=dTF_e", "abc.dTF_e"],
    ["abc", null],
    ["abc. def", null],
    ["", null],
    ["TF_HTTP_USERNAME='abc'", null],
  ] as const) {
    equal(tokenIn(text), token, text);
  }
});

test("A session is kept under the API's path alone, ends by its time, and leaves nothing", () => {
  let turns = 0;
  const end = onSession(() => turns++);
  const started = { token: "abc.def", principal: "token:abc", owner: null, until: null };
  signIn(started);
  deepEqual([...kept.keys()], ["holdfast:/team/"]);
  deepEqual(session(), started);
  signIn({ ...started, until: new Date(Date.now() - 1000).toISOString() });
  equal(session(), null);
  equal(kept.size, 0);
  equal(whyEnded()?.includes("Sign in again"), true);
  signIn(started);
  signOut();
  deepEqual([session(), whyEnded(), kept.size, turns], [null, null, 0, 5]);
  end();
});
