import { deepEqual, equal } from "node:assert/strict";
import test from "node:test";
import { href, parse, type Route } from "../src/route";

const ROUTES: [string, Route][] = [
  ["#/", { page: "states", query: {} }],
  ["#/?q=net&top=1", { page: "states", query: { q: "net", top: "1" } }],
  ["#/states/network/prod", { page: "state", name: "network/prod" }],
  ["#/states/network/history", { page: "state", name: "network/history" }],
  ["#/states/network/prod/-/history", { page: "history", name: "network/prod" }],
  ["#/states/network/prod/-/configuration", { page: "configuration", name: "network/prod" }],
  ["#/states/network/prod/-/activity", { page: "activity", name: "network/prod", query: {} }],
  ["#/states/a/-/activity?kind=all", { page: "activity", name: "a", query: { kind: "all" } }],
  ["#/states/a/-/diff/x%2Fy/z", { page: "diff", name: "a", from: "x/y", to: "z" }],
  [
    "#/states/a/-/resource/module.m%5B%22x%2Fy%3F%22%5D.t.n/v1",
    { page: "resource", name: "a", address: 'module.m["x/y?"].t.n', version: "v1" },
  ],
  ["#/states/a/-/resource/t.n", { page: "resource", name: "a", address: "t.n" }],
  ["#/locks", { page: "locks" }],
  ["#/activity?state=a", { page: "activity", query: { state: "a" } }],
  ["#/find", { page: "find" }],
];

test("An address and its page name each other", () => {
  for (const [address, route] of ROUTES) {
    deepEqual(parse(address), route);
    equal(href(route), address);
  }
});

test("An address that is no page's is unknown, never a request", () => {
  for (const address of [
    "#/states/",
    "#/states/../locks",
    "#/states/a?b/-/x",
    "#/states/a/-/diff/x",
    "#/states/a/-/resource",
    "#/states/a/-/resource/t.n/v/x",
    "#/states/a/-/history/x",
    "#/states/a/-/activity/x",
    "#/x",
    "#/states/%",
  ]) {
    equal(parse(address).page === "unknown" || address.includes("?"), true, address);
  }
});
