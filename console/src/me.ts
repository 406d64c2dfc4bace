// Who the caller is and what the page offers them. The API decides; a page that offers too much gets a 403.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Schemas } from "./api";

export type Me = Schemas["Principal"];
export type Action = Schemas["AllowedAction"]["action"];

export const MeContext = createContext<Me | null>(null);

/** Returns the caller; null until the API has said who they are. */
export const useMe = (): Me | null => useContext(MeContext);

/** Returns whether a pattern of a scope covers a state: `*` is a part of a segment, at the end also all below. */
export function covers(pattern: string, name: string): boolean {
  const segments = pattern.replaceAll(".", "\\.").replaceAll("*", "[^/]*");
  return pattern === "*" || new RegExp(`^${segments}${pattern.endsWith("/*") ? "(/.*)?" : ""}$`).test(name);
}

const allowed = (me: Me | null, action: Action) => me?.may.find((each) => each.action === action);

/** Returns whether the caller may do an action to a state, or without a name to any. */
export function may(me: Me | null, action: Action, name?: string): boolean {
  const scope = allowed(me, action)?.scope ?? [];
  return name === undefined ? scope.length > 0 : scope.some((pattern) => covers(pattern, name));
}

/** Returns the roles that allow an action, the least first, for a sentence. */
export const rolesFor = (me: Me, action: Action): string =>
  new Intl.ListFormat("en-GB", { type: "disjunction" }).format(allowed(me, action)?.roles ?? []);

/** Returns whether the page offers a caller to remove a lock: any, or their own. */
export const mayBreak = (me: Me | null, name: string, { principal }: Schemas["Lock"]): boolean =>
  may(me, "force_unlock", name) || (may(me, "unlock", name) && principal === me?.principal);
