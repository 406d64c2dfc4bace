// What the pages of one state share.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Role } from "./api";
import { has, useMe } from "./me";
import { href } from "./route";
import { Loading, Problem, useLoaded } from "./ui";

export const READERS: Role[] = ["reader", "writer", "maintainer"];
export const HISTORIANS: Role[] = ["auditor", ...READERS];

/** The head of each page of a state. */
export function Head({ name, page }: { name: string; page: "state" | "history" | "diff" }) {
  const link = (to: "state" | "history", text: string) => (
    <a href={href({ page: to, name })} aria-current={page === to ? "page" : undefined}>
      {text}
    </a>
  );
  return (
    <>
      <h1>{name}</h1>
      <nav class="views" aria-label="Pages of the state">
        {link("state", "Now")}
        {link("history", "History")}
      </nav>
    </>
  );
}

/** What the role allows, or the sentence that says which role does; nothing until the role is known. */
export function For(props: { roles: Role[]; name: string; what: string; children: ComponentChildren }) {
  const me = useMe();
  if (!me) return null;
  if (has(me, props.roles, props.name)) return <>{props.children}</>;
  const roles = new Intl.ListFormat("en-GB", { type: "disjunction" }).format(props.roles);
  return (
    <p class="faint">
      {props.what} is shown to the role {roles}, which you do not have here.
    </p>
  );
}

/** Reads a list page by page, the next one when it is asked for. */
export function usePages<P extends { next: string | null }>(
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<P>,
) {
  const [pages, setPages] = useState<P[]>([]);
  const [wanted, setWanted] = useState(1);
  const next = pages.at(-1)?.next;
  const { error, loading, again } = useLoaded(
    async (signal) => {
      const page = await load(next ?? undefined, signal);
      if (!signal.aborted) setPages([...pages, page]);
    },
    [wanted],
  );
  return { pages, error, loading, again, more: next ? () => setWanted(pages.length + 1) : undefined };
}

/** What follows the pages that are shown: a button, a failure or nothing. */
export function More({ pages, what }: { pages: ReturnType<typeof usePages>; what: string }) {
  if (pages.error) return <Problem error={pages.error} again={pages.again} />;
  if (!pages.pages.length) return <Loading what={what} />;
  return pages.more ? (
    <p>
      <button type="button" onClick={pages.more} disabled={pages.loading}>
        {pages.loading ? "Loading …" : `Show more ${what}`}
      </button>
    </p>
  ) : null;
}

export const Hidden = ({ sensitive }: { sensitive: boolean }) => (
  <span class="faint">{sensitive ? "(sensitive)" : "(hidden)"}</span>
);

export const ShowValues = (props: { values: boolean; setValues: (values: boolean) => void }) => (
  <label>
    <input type="checkbox" checked={props.values} onChange={(event) => props.setValues(event.currentTarget.checked)} />
    Show values, except those that the state marks as sensitive
  </label>
);
