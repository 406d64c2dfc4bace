// Requests to the management API, as the person who is signed in.

import type { components } from "../../.build/console-types/schema";
import { note } from "./clock";
import { type Query, queryOf } from "./route";
import { session, signOut } from "./session";
import { namedIn } from "./words";

export type Schemas = components["schemas"];

/** What the API answered instead of a result; status 0 if there was no answer. */
export class ApiError extends Error {
  /** `retryAfter` are the seconds to wait; it can be null. */
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryAfter: number | null = null,
  ) {
    super(message);
  }
}

const LONGEST = 40_000; // API Gateway answers within 30 s
const SOON = 3; // seconds that a request waits while the team sends too many
const API = "../manage/v1/";
const REFUSED = "Your credentials expired or were revoked. Sign in again to continue.";

type Read<T> = (text: string) => T | null;

/** Returns a JSON text as a document; null if a gateway or a proxy wrote something else. */
function parsed<T>(text: string): T | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

async function request<T>(
  path: string,
  init: RequestInit,
  token?: string,
  read: Read<T> = parsed,
  tries = 3,
): Promise<T> {
  const used = token ?? session()?.token;
  if (!used) throw new ApiError(401, "not_authenticated", "You are signed out.");
  const late = AbortSignal.timeout(LONGEST);
  const sent: RequestInit = {
    ...init,
    headers: { Authorization: `Bearer ${used}`, Accept: "application/json" },
    signal: init.signal ? AbortSignal.any([init.signal, late]) : late,
    credentials: "omit",
    redirect: "error",
    cache: "no-store",
  };
  let response: Response;
  let text: string;
  try {
    response = await fetch(API + path, sent);
    text = await response.text();
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, "unreachable", `There was no answer${late.aborted ? " in time" : ""}.`);
  }
  note(response.headers.get("Date"));
  const result = response.ok ? read(text) : null;
  if (result !== null) return result;
  const body = parsed<{ error?: string; message?: string }>(text);
  const status = response.ok ? 0 : response.status;
  // So the gateway refuses credentials that ended. A firewall's 403 has other words.
  const isRefused = status === 401 || (status === 403 && !body?.error && body?.message === "Forbidden");
  if (isRefused && !token && session()?.token === used) signOut(REFUSED);
  const after = Number.parseInt(response.headers.get("Retry-After") ?? "", 10) || null;
  if (status === 429 && tries > 1 && (after ?? 0) <= SOON) {
    await new Promise((resolve) => setTimeout(resolve, 1000 * (after ?? SOON)));
    return request(path, init, token, read, tries - 1);
  }
  throw new ApiError(status, body?.error ?? "", namedIn(body?.message ?? "", session()), after);
}

/** Reads a path below `/manage/v1/`, as `states/network/prod`; raises `ApiError`. */
export const get = <T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> =>
  request<T>(path + queryOf(query), { signal: signal ?? null });

/** Reads a path below `/manage/v1/` as the text that it is; raises `ApiError`. */
export const raw = (path: string, query: Query): Promise<string> =>
  request(path + queryOf(query), {}, undefined, (text) => text);

/** Sends a request with a verb and, unless it is undefined, a body; raises `ApiError`. */
export const send = <T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> =>
  request<T>(path, { method, body: body === undefined ? null : JSON.stringify(body), signal: signal ?? null });

/** Asks the API who a token is, before anybody is signed in with it; raises `ApiError`. */
export const whoIs = (token: string): Promise<Schemas["Principal"]> => request("whoami", {}, token);

/** Reads a list page by page, and hands over what there is after each page; raises `ApiError`. */
export async function list<T>(
  path: string,
  signal: AbortSignal,
  show?: (items: T[]) => void,
  query: Query = {},
): Promise<T[]> {
  const items: T[] = [];
  for await (const page of follow((cursor) => get<Paged>(path, { ...query, cursor }, signal))) {
    items.push(...(page[path] as T[]));
    if (page.next) show?.([...items]);
  }
  return items;
}

type Paged = Record<string, unknown> & { next?: string | null };

/** Sends a request again with the cursor of each response until one has none; raises `ApiError`. */
export async function* follow<P extends { next?: string | null }>(
  ask: (cursor: string | undefined) => Promise<P>,
): AsyncGenerator<P> {
  let cursor: string | undefined;
  do {
    const page = await ask(cursor);
    yield page;
    if (page.next && page.next === cursor) throw new ApiError(0, "fault", "The API did not return the whole list");
    cursor = page.next ?? undefined;
  } while (cursor);
}
