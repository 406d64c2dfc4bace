// Who is signed in, in this tab. Nothing else keeps the token.

import { isOver } from "./clock";

export type Session = { token: string; principal: string; until: string | null; owner: string | null };

/** The path of the API, to which the console is relative. All APIs of a local AWS share one origin. */
const API = new URL("..", location.href).pathname;
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

function keep(text: string | null): void {
  try {
    if (text) sessionStorage.setItem(KEY, text);
    else sessionStorage.removeItem(KEY);
  } catch {
    // The browser keeps nothing: the session lives until the page is reloaded.
  }
}

/** Returns the session; null if nobody is signed in, or the session's time is over. */
export function session(): Session | null {
  if (current?.until && isOver(current.until)) {
    signOut("Your session ended. Sign in again to go on where you were.");
  }
  return current;
}

/** Returns why the last session ended; null if the person ended it. */
export const whyEnded = (): string | null => ended;

export function signIn(started: Session): void {
  current = started;
  ended = null;
  keep(JSON.stringify(started));
  for (const listener of listeners) listener();
}

/** Forgets the session, in memory and in the browser's storage. */
export function signOut(reason: string | null = null): void {
  current = null;
  ended = reason;
  keep(null);
  for (const listener of listeners) listener();
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
  const id = /TF_HTTP_USERNAME=["']?([^\s"']+?)["']?(?=\s|$|export|TF_)/.exec(text)?.[1];
  const secret = /TF_HTTP_PASSWORD=["']?([^\s"']+?)["']?(?=\s|$|export|TF_)/.exec(text)?.[1];
  if (id && secret) return id === "oidc" ? secret : `${id}.${secret}`;
  const found = /TF_TOKEN_\w+=["']?([^\s"']+)/.exec(text)?.[1] ?? text.trim().replace(/^Bearer\s+/i, "");
  return /^[!-~]+\.[!-~]+$/.test(found) ? found : null;
}
