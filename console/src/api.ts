// Requests to the management API, as the person who is signed in.

import type { components } from "../../.build/console-types/schema";
import { note } from "./clock";
import { session, signOut } from "./session";

export type Schemas = components["schemas"];
export type Role = Schemas["Grant"]["role"];

/** What the API answered instead of a result; status 0 if there was no answer. */
export class ApiError extends Error {
  /** `retryAfter` are the seconds to wait; `lock` is what is in the way, of a 423. Each can be null. */
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryAfter: number | null = null,
    readonly lock: Record<string, unknown> | null = null,
  ) {
    super(message);
  }
}

const LONGEST = 40_000; // API Gateway answers within 30 s
const API = "../manage/v1/";

async function request<T>(path: string, init: RequestInit, token?: string): Promise<T> {
  const used = token ?? session()?.token;
  if (!used) throw new ApiError(401, "not_authenticated", "You are signed out.");
  const late = AbortSignal.timeout(LONGEST);
  let response: Response;
  let text: string;
  try {
    response = await fetch(API + path, {
      ...init,
      headers: { Authorization: `Bearer ${used}`, Accept: "application/json" },
      signal: init.signal ? AbortSignal.any([init.signal, late]) : late,
      credentials: "omit",
      redirect: "error",
      cache: "no-store",
    });
    text = await response.text();
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, "unreachable", late.aborted ? "There was no answer in time." : "There was no answer.");
  }
  note(response.headers.get("Date"));
  let body: { error?: string; message?: string; lock?: null } | null = null;
  try {
    body = JSON.parse(text);
  } catch {
    // A gateway or a proxy answered.
  }
  if (response.ok && body !== null) return body as T;
  const after = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  const error = new ApiError(
    response.ok ? 0 : response.status,
    body?.error ?? "",
    body?.message ?? "",
    Number.isNaN(after) ? null : after,
    body?.lock ?? null,
  );
  // The gateway refuses credentials that ended with 403 and no code.
  const refused = error.status === 401 || (error.status === 403 && !error.code);
  if (refused && !token && session()?.token === used) {
    signOut("The API no longer accepts your credentials: they ended or were revoked. Sign in again to go on.");
  }
  throw error;
}

/** Reads a path below `/manage/v1/`, as `states/network/prod`; raises `ApiError`. */
export function get<T>(path: string, query: Record<string, string | undefined> = {}, signal?: AbortSignal): Promise<T> {
  return request<T>(path + asked(query), { signal: signal ?? null });
}

/** Sends a request with a verb and, unless it is undefined, a body; raises `ApiError`. */
export function send<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const sent = body === undefined ? null : JSON.stringify(body);
  return request<T>(path, { method, body: sent, signal: signal ?? null });
}

/** Reads a list page by page, and hands over what there is after each page; raises `ApiError`. */
export async function list<T>(
  path: string,
  member: string,
  signal: AbortSignal,
  seen: (items: T[]) => void = () => {},
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await get<Record<string, unknown>>(path, { cursor }, signal);
    items.push(...(page[member] as T[]));
    cursor = (page.next as string | null) ?? undefined;
    if (cursor) seen([...items]);
  } while (cursor);
  return items;
}

/** Asks the API who a token is, before anybody is signed in with it. */
export const whoIs = (token: string): Promise<Schemas["Principal"]> => request("whoami", {}, token);

/** Returns a query with its question mark; empty if nothing is asked. */
export function asked(query: Record<string, string | undefined>): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}
