// The list of states. Only rows near the view are drawn, so that 5,000 of them answer to a keystroke at once.

import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, list, type Schemas } from "./api";
import { counted } from "./format";
import { type Kept, type Load, useLoaded, useQuery } from "./load";
import { LockBadge } from "./locks";
import { failure } from "./problems";
import { href, type Query } from "./route";
import { inView, matching, ORDERS, ordered, type State } from "./rows";
import { onSession } from "./session";
import { Age, Button, By, Choice, Empty, Shown, Size, StateLink, Status, Tick } from "./ui";

const EVERY = 10; // seconds between two readings of the list
const MARGIN = 12; // rows that are drawn above and below the view
const AT_ONCE = 2; // requests for those who wrote the rows in view: each may read a whole state

type Writer = Pick<Schemas["StateDescription"], "principal" | "owner" | "who">;

/** What was read last, so that coming back to the list shows it at once. It is one session's. */
let kept: Kept<State[]> = { at: 0 };
let writers = new Map<string, Writer | null>();
onSession(() => {
  kept = { at: 0 };
  writers = new Map();
});

export function StatesPage(props: { query: Query }) {
  const [query, change] = useQuery("states", props.query);
  const { q: typed = "", by = "name", locked = "" } = query;
  const read: Load<State[]> = (signal, show) => list("states", signal, kept.at ? undefined : show);
  const states = useLoaded(read, [], EVERY, kept);
  const all = useMemo(() => ordered(states.data ?? [], by, locked !== ""), [states.data, by, locked]);
  const shown = useMemo(() => matching(all, typed), [all, typed]);
  const table = () => {
    if (shown.length) return <States states={shown} />;
    if (!all.length) return <NoStates />;
    return (
      <Empty title={`No state matches “${typed}”`}>
        <Button onClick={() => change({ q: "" })}>Show all states</Button> or{" "}
        <a href={href({ page: "find" })}>look for a resource</a>.
      </Empty>
    );
  };
  return (
    <>
      <h1>States</h1>
      <search class="tools">
        <input
          type="search"
          aria-label="Filter the states by letters of their names"
          placeholder="Filter by letters"
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onInput={(event) => change({ q: event.currentTarget.value })}
          onKeyDown={move}
        />
        <Tick label="Locked first" checked={locked !== ""} onChange={(is) => change({ locked: is ? "1" : "" })} />
        <Choice label="Order" name="order" of={ORDERS} value={by} onChange={(order) => change({ by: order })} />
        <Status>
          {shown.length < all.length && `${shown.length.toLocaleString("en")} of `}
          {counted(all.length, "state")}
          {kept.at ? "" : " so far …"}
        </Status>
      </search>
      <Shown of={states} what="states" show={table} />
    </>
  );
}

/** The table: it moves with the page, so that it can be searched, scrolled and printed like any. */
function States({ states }: { states: State[] }) {
  const table = useRef<HTMLTableElement>(null);
  const { from, to, height, isPrinted } = useView(table, states.length);
  const first = isPrinted ? 0 : Math.max(0, from - MARGIN);
  const last = isPrinted ? states.length : Math.min(states.length, to + MARGIN);
  const writerOf = useWriters(states.slice(from, to));
  return (
    <table ref={table} class="states" aria-rowcount={states.length + 1} onKeyDown={move}>
      <thead>
        <tr aria-rowindex={1}>
          <th>State</th>
          <th class="size">Size</th>
          <th class="modified">Last write</th>
          <th class="lock">Lock</th>
          <th class="by">By</th>
        </tr>
      </thead>
      <Space height={first * height} />
      <tbody>
        {states.slice(first, last).map((state, at) => {
          const modified = state.modified ? <Age at={state.modified} /> : <span class="faint">never written</span>;
          const size = <Size bytes={state.size} />;
          return (
            <tr key={state.name} class="state" aria-rowindex={first + at + 2}>
              <td class="name" title={state.name}>
                <StateLink name={state.name} />
                <small class="narrow">
                  {modified} · {size}
                </small>
              </td>
              <td class="size">{size}</td>
              <td class="modified">{modified}</td>
              <td class="lock">{state.lock && <LockBadge lock={state.lock} />}</td>
              <td class="by">{writerOf(state)}</td>
            </tr>
          );
        })}
      </tbody>
      <Space height={(states.length - last) * height} />
    </table>
  );
}

/** The place of rows that are not drawn. */
const Space = ({ height }: { height: number }) => (
  <tbody aria-hidden="true">
    <tr style={{ height: `${height}px` }} />
  </tbody>
);

const NoStates = () => (
  <Empty title="No state is in your scope yet">
    <code>holdfast backend-config &lt;state&gt;</code> prints the block for a Terraform configuration. A state appears
    here after its first <code>terraform apply</code>.
  </Empty>
);

/** Returns which rows are in view, the height of one, and whether all have to be drawn for paper. */
function useView(table: RefObject<HTMLTableElement | null>, count: number) {
  const [view, setView] = useState({ from: 0, to: 60, height: 40 });
  const [isPrinted, setPrinted] = useState(false);
  const look = () => {
    const top = table.current?.tBodies[0]?.getBoundingClientRect().top ?? 0;
    const height = table.current?.querySelector("tr.state")?.getBoundingClientRect().height || 40;
    const [from, to] = inView(count, top, innerHeight, height);
    setView((before) =>
      before.from === from && before.to === to && before.height === height ? before : { from, to, height },
    );
  };
  useLayoutEffect(look, [count]);
  useEffect(() => {
    const abort = new AbortController();
    addEventListener("scroll", look, { passive: true, signal: abort.signal });
    addEventListener("resize", look, abort);
    addEventListener("beforeprint", () => setPrinted(true), abort);
    addEventListener("afterprint", () => setPrinted(false), abort);
    return () => abort.abort();
  }, [count]);
  return { ...view, isPrinted };
}

/** Asks who wrote the rows in view once they stay there, a few at a time. */
function useWriters(seen: State[]): (state: State) => ComponentChildren {
  const [, setTurn] = useState(0);
  const key = (state: State) => `${state.name} ${state.modified}`;
  useEffect(() => {
    const left = seen.filter((state) => state.modified !== null && !writers.has(key(state)));
    if (!left.length || !matchMedia("(min-width: 52rem)").matches) return;
    const abort = new AbortController();
    const ask = async () => {
      for (let state = left.shift(); state && !abort.signal.aborted; state = left.shift()) {
        try {
          writers.set(key(state), await get<Writer>(`states/${state.name}`, {}, abort.signal));
        } catch (error) {
          if (abort.signal.aborted || ![403, 404, 409].includes(failure(error).status)) return;
          writers.set(key(state), null);
        }
        setTurn((turn) => turn + 1);
      }
    };
    const timer = setTimeout(() => Array.from({ length: AT_ONCE }, ask), 300);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [seen.map(key).join("\n")]);
  return (state) => {
    const writer = writers.get(key(state));
    if (writer) return <By of={writer} />;
    return <span class="faint">{writer === undefined && state.modified ? "…" : "–"}</span>;
  };
}

/** Moves the focus to the next state or the one before. */
function move(event: KeyboardEvent): void {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const links = [...document.querySelectorAll<HTMLElement>("td.name a")];
  links[links.indexOf(document.activeElement as HTMLElement) + by]?.focus();
}
