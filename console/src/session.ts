// Who is signed in, in this tab. Nothing else keeps the token.

import { isOver } from "./clock";

export type Session = { token: string; principal: string; until: string | null; owner: string | null };

/** The path of the API, to which the console is relative. All APIs of a local AWS share one origin. */
export const API = new URL("..", location.href).pathname;
const KEY = `holdfast:${API}`;

let current: Session | null = stored();
let ended: string | null = null;
const listeners = new Set<() => void>();

function stored(): Session | null {
  try {
    const found = JSON.parse(sessionStorage.getItem(KEY) ?? "null");
    return typeof found?.token === "string" && typeof found.principal === "string" ? found : null;
  } catch {
    return null;
  }
}

function change(session: Session | null, reason: string | null): void {
  current = session;
  ended = reason;
  try {
    if (session) sessionStorage.setItem(KEY, JSON.stringify(session));
    else sessionStorage.removeItem(KEY);
  } catch {
    // The browser keeps nothing: the session lives until the page is reloaded.
  }
  for (const listener of listeners) listener();
}

export const signIn = (started: Session): void => change(started, null);

/** Forgets the session, in memory and in the browser's storage. */
export const signOut = (reason: string | null = null): void => change(null, reason);

/** Returns why the last session ended; null if the person ended it. */
export const whyEnded = (): string | null => ended;

/** Returns the session; null if nobody is signed in, or the session's time is over. */
export function session(): Session | null {
  if (current?.until && isOver(current.until)) signOut("Your session ended. Sign in again to continue.");
  return current;
}

/** Calls a function at each sign-in and sign-out; returns what ends that. */
export function onSession(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Returns the token in a pasted text: `<id>.<secret>`, an ID token, or the lines that set TF_HTTP_USERNAME and
 * TF_HTTP_PASSWORD, or TF_TOKEN_…; null if there is none.
 */
export function tokenIn(text: string): string | null {
  const set = (name: string) =>
    new RegExp(`TF_HTTP_${name}=["']?([^\\s"']+?)["']?(?=\\s|$|export TF_|TF_HTTP_|TF_TOKEN_)`).exec(text)?.[1];
  const [id, secret] = [set("USERNAME"), set("PASSWORD")];
  if (id && secret) return id === "oidc" ? secret : `${id}.${secret}`;
  const found = /TF_TOKEN_\w+=["']?([^\s"']+)/.exec(text)?.[1] ?? text.trim().replace(/^Bearer\s+/i, "");
  return /^[!-~]+\.[!-~]+$/.test(found) ? found : null;
}
