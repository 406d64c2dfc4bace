// What all pages are made of.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "./api";
import { now } from "./clock";
import { ages, bytes, exactly } from "./format";
import { failure, words } from "./problems";
import { href, type Query } from "./route";

export type Loaded<T> = { data?: T; error?: ApiError; loading: boolean; again: () => void };

/** Loads data at first and when a dependency changes; `again` loads it anew and keeps what is shown meanwhile. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, deps: unknown[]): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: ApiError; loading: boolean }>({ loading: true });
  const [turn, setTurn] = useState(0);
  const shown = useRef(0);
  useEffect(() => {
    const abort = new AbortController();
    const isAgain = shown.current !== turn;
    shown.current = turn;
    setState((before) => (isAgain ? { ...before, loading: true } : { loading: true }));
    load(abort.signal).then(
      (data) => abort.signal.aborted || setState({ data, loading: false }),
      (error) => abort.signal.aborted || setState(({ data }) => ({ data, error: failure(error), loading: false })),
    );
    return () => abort.abort();
  }, [...deps, turn]);
  return { ...state, again: () => setTurn((before) => before + 1) };
}

/** Keeps what a page is asked for in its address, so that it can be shared and the back button finds it. */
export function useQuery(page: "states" | "activity", given: Query): [Query, (changed: Query) => void] {
  const [query, setQuery] = useState(given);
  useEffect(() => {
    const place = location.href;
    const note = () => place === location.href && history.replaceState(history.state, "", href({ page, query }));
    const timer = setTimeout(note, 300);
    return () => clearTimeout(timer);
  }, [page, query]);
  return [query, (changed) => setQuery((before) => ({ ...before, ...changed }))];
}

/** Calls a function again and again while the page is visible, never twice within `seconds`. */
export function useEvery(seconds: number, run: () => void): void {
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    let last = Date.now();
    const look = () => {
      if (document.visibilityState === "hidden" || Date.now() - last < seconds * 1000) return;
      last = Date.now();
      latest.current();
    };
    const timer = setInterval(look, 1000);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [seconds]);
}

/** Renders anew every ten seconds while the page is visible, so that ages stay true. */
export function useTick(): void {
  const [, setTick] = useState(0);
  useEvery(10, () => setTick((tick) => tick + 1));
}

/** A failure, in words, with a button that tries again. */
export function Problem({ error, again, note }: { error: ApiError; again?: () => void; note?: string }) {
  const { title, advice } = words(error);
  return (
    <div class="problem" role="alert">
      <strong>{title}</strong>
      <p>{advice}</p>
      {note && <p>{note}</p>}
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

/** What stands where nothing is: what that means and what to do next. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}

export const Loading = ({ what }: { what: string }) => (
  <p class="loading" role="status">
    Loading {what} …
  </p>
);

/** How long ago something was, with the exact time on hover and for screen readers. */
export const Age = ({ at }: { at: string }) => (
  <time dateTime={at} title={exactly(at)}>
    {ages(at, now())} ago
  </time>
);

export const Size = ({ bytes: count }: { bytes: number | null }) =>
  count === null ? <span class="faint">–</span> : <span title={`${count} bytes`}>{bytes(count)}</span>;

/** A principal, and the person whom the creator of the credentials named. */
export const Person = ({ principal, owner }: { principal: string | null; owner?: string | null }) =>
  owner ? <span title={principal ?? undefined}>{owner}</span> : <span>{principal ?? "another program"}</span>;

/** A page before it has anything to show. */
export const Waiting = ({ title, error, again }: { title: string; error?: ApiError; again: () => void }) => (
  <>
    <h1>{title}</h1>
    {error ? <Problem error={error} again={again} /> : <Loading what={`the ${title.toLowerCase()}`} />}
  </>
);

/** A modal dialog. Escape and its close button call `onClose`. */
export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    const element = dialog.current;
    element?.showModal();
    return () => {
      element?.close(); // while it is open, nothing else takes the focus
      const opener = before?.isConnected ? before : document.getElementById("main"); // a change may remove it
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby="dialog-title" onClose={props.onClose}>
      <header>
        <h2 id="dialog-title">{props.title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={props.onClose}>
          ✕
        </button>
      </header>
      {props.children}
    </dialog>
  );
}
