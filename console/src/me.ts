// Who the caller is and what the page offers them. The API decides; a page that offers too much gets a 403.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Role, Schemas } from "./api";

export type Me = Schemas["Principal"];

export const MeContext = createContext<Me | null>(null);

/** Returns the caller; null until the API has said who they are. */
export const useMe = (): Me | null => useContext(MeContext);

/** Returns whether a pattern of a scope covers a state. */
export function covers(pattern: string, name: string): boolean {
  if (pattern === "*") return true;
  const wanted = pattern.split("/");
  const segments = name.split("/");
  if (segments.length < wanted.length || (segments.length > wanted.length && wanted.at(-1) !== "*")) return false;
  return wanted.every((text, at) => {
    const parts = text.split("*").map((part) => part.replace(/[.]/g, "\\."));
    return new RegExp(`^${parts.join(".*")}$`).test(segments[at] ?? "");
  });
}

/** Returns whether the caller has one of the roles; for a state, or without a name for any. */
export function has(me: Me | null, roles: Role[], name?: string): boolean {
  const grants = me?.grants.filter((grant) => roles.includes(grant.role)) ?? [];
  return grants.some((grant) => name === undefined || grant.scope.some((pattern) => covers(pattern, name)));
}

/** Returns whether the caller may break, restore and freeze; for a state, or without a name for any. */
export const maintains = (me: Me | null, name?: string): boolean => has(me, ["maintainer"], name);

/** Returns whether the caller may read the activity of some states. */
export const audits = (me: Me | null): boolean => has(me, ["auditor", "maintainer"]);

/** Returns whether the caller may read a state's content. */
export const reads = (me: Me | null, name?: string): boolean => has(me, ["reader", "writer", "maintainer"], name);
