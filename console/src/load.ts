// Reading from the API, again and again, and keeping what a page is asked for.

import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "./api";
import { failure } from "./problems";
import { href, type Query, type Route } from "./route";

/** Reads data, and may show a part of it before it returns all. */
export type Load<T> = (signal: AbortSignal, show: (part: T) => void) => Promise<T>;
type Read<T> = { data?: T; error?: ApiError; loading: boolean };
/** `again` reads anew, or of a list that is read page by page the next page. */
export type Loaded<T> = Read<T> & { again: () => void; hasMore?: boolean };
/** What was read last, and when that began: for a page that people come back to. */
export type Kept<T> = { data?: T; at: number };

/**
 * Loads data at first, when a dependency changes and when `again` is called; also every so many seconds while the page
 * is visible, but less often if that is slow or the API asks for it. What was read stays until then.
 */
export function useLoaded<T>(load: Load<T>, deps: unknown[], every = 0, kept?: Kept<T>): Loaded<T> {
  const [read, setRead] = useState<Read<T>>({ data: kept?.data, loading: !kept?.data });
  const [turn, setTurn] = useState(0);
  const due = useRef((kept?.at ?? 0) + every * 1000);
  const isNew = useRef(true);
  const again = () => setTurn((before) => before + 1);
  useEffect(() => {
    const begun = Date.now();
    const isFirst = isNew.current;
    isNew.current = false;
    if (kept && isFirst && begun < due.current) return; // later something else is asked for
    const abort = new AbortController();
    const show = (seen: Partial<Read<T>>, seconds = 0) => {
      if (abort.signal.aborted) return;
      setRead((before) => ({ ...before, ...seen }));
      due.current = Math.max(begun + every * 1000, Date.now() + seconds * 1000);
    };
    show({ loading: true });
    load(abort.signal, (data) => show({ data })).then(
      (data) => {
        if (kept) Object.assign(kept, { data, at: begun });
        show({ data, error: undefined, loading: false }, (4 * (Date.now() - begun)) / 1000);
      },
      (thrown) => {
        const error = failure(thrown);
        show({ error, loading: false }, error.retryAfter ?? 0);
      },
    );
    return () => abort.abort();
  }, [...deps, turn]);
  useEvery(1, () => every > 0 && !read.loading && Date.now() >= due.current && again());
  return { ...read, again };
}

/** Reads a list page by page, the next one when `again` is called. It shows what was `kept`, and reads on from there. */
export function usePages<P extends { next: string | null }>(
  load: (cursor: string | undefined, signal: AbortSignal, show: (part: P) => void) => Promise<P>,
  kept: { pages?: P[] } = {},
): Loaded<P[]> {
  const pages = useRef<P[]>(kept.pages ?? []);
  const read: Load<P[]> = async (signal, show) => {
    const showPart = (part: P) => show([...pages.current, part]);
    const page = await load(pages.current.at(-1)?.next ?? undefined, signal, showPart);
    pages.current = [...pages.current, page];
    kept.pages = pages.current;
    return pages.current;
  };
  const loaded = useLoaded<P[]>(read, [], 0, kept.pages && { data: kept.pages, at: Infinity });
  return { ...loaded, hasMore: Boolean(pages.current.at(-1)?.next) && !loaded.error };
}

type Queried = Extract<Route, { page: "states" | "activity" }>;

/** Keeps what a page is asked for in its address, so that it can be shared and the back button finds it. */
export function useQuery(of: Queried, given: Query): [Query, (changed: Query) => void] {
  const [query, setQuery] = useState(given);
  useEffect(() => {
    const place = location.href;
    const note = () => place === location.href && history.replaceState(history.state, "", href({ ...of, query }));
    const timer = setTimeout(note, 300);
    return () => clearTimeout(timer);
  }, [query]);
  return [query, (changed) => setQuery((before) => ({ ...before, ...changed }))];
}

/** Calls a function every so many seconds while the page is visible. */
export function useEvery(seconds: number, run: () => void): void {
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && latest.current(), seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds]);
}
