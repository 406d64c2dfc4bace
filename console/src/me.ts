// Who the caller is and what the page offers them. The API decides; a page that offers too much gets a 403.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Role, Schemas } from "./api";

export type Me = Schemas["Principal"];

export const READERS: Role[] = ["reader", "writer", "maintainer"];
export const HISTORIANS: Role[] = ["auditor", ...READERS];
export const AUDITORS: Role[] = ["auditor", "maintainer"];

export const MeContext = createContext<Me | null>(null);

/** Returns the caller; null until the API has said who they are. */
export const useMe = (): Me | null => useContext(MeContext);

/** Returns whether a pattern of a scope covers a state: `*` is a part of a segment, at the end also all below. */
export function covers(pattern: string, name: string): boolean {
  const segments = pattern.replaceAll(".", "\\.").replaceAll("*", "[^/]*");
  return pattern === "*" || new RegExp(`^${segments}${pattern.endsWith("/*") ? "(/.*)?" : ""}$`).test(name);
}

/** Returns whether the caller has one of the roles; for a state, or without a name for any. */
export function has(me: Me | null, roles: Role[], name?: string): boolean {
  const grants = me?.grants.filter((grant) => roles.includes(grant.role)) ?? [];
  return grants.some((grant) => name === undefined || grant.scope.some((pattern) => covers(pattern, name)));
}

/** Returns whether the caller may break, restore and freeze. */
export const maintains = (me: Me | null, name: string): boolean => has(me, ["maintainer"], name);

/** Returns whether the page offers a caller to remove a lock. A writer may remove their own. */
export const mayBreak = (me: Me | null, name: string, { principal }: Schemas["Lock"]): boolean =>
  maintains(me, name) || (has(me, ["writer"], name) && principal === me?.principal);
