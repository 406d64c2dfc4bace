// The list of states. Only rows near the view are drawn, so that 5,000 of them answer to a keystroke at once.

import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ApiError, get, list, type Schemas } from "./api";
import { counted } from "./format";
import { LockBadge } from "./locks";
import { useMe } from "./me";
import { failure } from "./problems";
import { href, type Query } from "./route";
import { type Column, drawn, marked, matching, type Order, ordered, type State } from "./rows";
import { onSession } from "./session";
import { Age, Empty, Person, Problem, Size, useEvery, useQuery, Waiting } from "./ui";

const EVERY = 10; // seconds between two readings of the list
const MORE = 12; // rows that are drawn above and below the view
const AT_ONCE = 2; // requests for those who wrote the rows in view: each may read a whole state
const STALE = "What you see was read before. The page tries again by itself while it is visible.";
const COLUMNS: [Column, string][] = [
  ["name", "State"],
  ["size", "Size"],
  ["modified", "Last write"],
  ["lock", "Lock"],
];

type Writer = Pick<Schemas["StateDescription"], "principal" | "owner">;
type Kept = { states?: State[]; at: number; writers: Map<string, Writer | null> };

/** What was read last, so that coming back to the list shows it at once. It is one session's. */
let kept: Kept = { at: 0, writers: new Map() };
onSession(() => {
  kept = { at: 0, writers: new Map() };
});

export function StatesPage(props: { query: Query }) {
  const { states, complete, error, again } = useStates();
  const [query, change] = useQuery("states", props.query);
  const { q: typed = "", by = "name", down = "", locked = "" } = query;
  const order = { by: by as Column, down: down !== "", locked: locked !== "" };
  const all = useMemo(() => ordered(states ?? [], order), [states, by, down, locked]);
  const shown = useMemo(() => matching(all, typed), [all, typed]);
  const table = useRef<HTMLTableElement>(null);

  if (!states) return <Waiting title="States" error={error} again={again} />;
  const sort = (column: Column) => {
    const isDown = by === column ? !down : column !== "name";
    change({ by: column === "name" ? undefined : column, down: isDown ? "1" : undefined });
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
          onKeyDown={(event) => event.key === "ArrowDown" && move(event, table.current, 1)}
        />
        <label>
          <input
            type="checkbox"
            checked={order.locked}
            onChange={(event) => change({ locked: event.currentTarget.checked ? "1" : "" })}
          />
          Locked first
        </label>
        <label class="narrow">
          Order
          <select value={order.by} onChange={(event) => sort(event.currentTarget.value as Column)}>
            {COLUMNS.map(([by, title]) => (
              <option key={by} value={by}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <p role="status" class="faint">
          {shown.length === all.length ? "" : `${shown.length.toLocaleString("en")} of `}
          {counted(all.length, "state")}
          {complete ? "" : " so far …"}
        </p>
      </search>
      {error && <Problem error={error} again={again} note={STALE} />}
      {shown.length ? (
        <States table={table} states={shown} typed={typed} order={order} sort={sort} />
      ) : all.length ? (
        <Empty title={`No state matches “${typed}”`}>
          <p>
            <button type="button" onClick={() => change({ q: "" })}>
              Show all states
            </button>{" "}
            or <a href={href({ page: "find" })}>look for a resource</a>.
          </p>
        </Empty>
      ) : (
        complete && <NoStates />
      )}
    </>
  );
}

/** The table: it moves with the page, so that it can be searched, scrolled and printed like any. */
function States(props: {
  table: RefObject<HTMLTableElement | null>;
  states: State[];
  typed: string;
  order: Order;
  sort: (by: Column) => void;
}) {
  const { table, states, typed, order, sort } = props;
  const [first, last, from, to, height] = useView(table, states.length);
  const writerOf = useWriters(states.slice(from, to));
  return (
    <table
      ref={table}
      class="states"
      aria-rowcount={states.length + 1}
      onKeyDown={(event) =>
        (event.key === "ArrowDown" && move(event, table.current, 1)) ||
        (event.key === "ArrowUp" && move(event, table.current, -1))
      }>
      <thead>
        <tr aria-rowindex={1}>
          {COLUMNS.map(([by, title]) => (
            <th
              key={by}
              scope="col"
              class={by}
              aria-sort={order.by !== by ? undefined : order.down ? "descending" : "ascending"}>
              <button type="button" onClick={() => sort(by)}>
                {title}
              </button>
            </th>
          ))}
          <th scope="col" class="by">
            By
          </th>
        </tr>
      </thead>
      <Space height={first * height} />
      <tbody>
        {states.slice(first, last).map((state, at) => (
          <tr key={state.name} class="state" aria-rowindex={first + at + 2}>
            <td class="name">
              <a href={href({ page: "state", name: state.name })} title={state.name}>
                {marked(state.name, typed).map(([text, isTyped], part) =>
                  isTyped ? <mark key={part}>{text}</mark> : text,
                )}
              </a>
              <small class="narrow">
                {state.modified ? <Age at={state.modified} /> : "never written"}
                {state.size !== null && " · "}
                {state.size !== null && <Size bytes={state.size} />}
              </small>
            </td>
            <td class="size">
              <Size bytes={state.size} />
            </td>
            <td class="modified">{state.modified ? <Age at={state.modified} /> : <span class="faint">never</span>}</td>
            <td class="lock">{state.lock ? <LockBadge lock={state.lock} /> : null}</td>
            <td class="by">{writerOf(state)}</td>
          </tr>
        ))}
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

function NoStates() {
  const scopes = useMe()?.grants.flatMap(({ scope }) => scope) ?? [];
  return (
    <Empty title={scopes.includes("*") ? "There are no states yet" : "There are no states in your scope yet"}>
      <p>
        <code>holdfast backend-config &lt;state&gt;</code> prints the block for a Terraform configuration. A state
        appears here after its first <code>terraform apply</code>.
      </p>
      {scopes.length > 0 && !scopes.includes("*") && <p>Your scope: {scopes.join(", ")}</p>}
    </Empty>
  );
}

/** Reads all pages of the list; then again while the page is visible, at most once in ten seconds. */
function useStates() {
  const [, setTurn] = useState(0);
  const [error, setError] = useState<ApiError>();
  const running = useRef<AbortController | undefined>(undefined);
  const notBefore = useRef(0);
  const read = async (into: Kept) => {
    running.current?.abort();
    const abort = new AbortController();
    running.current = abort;
    const begun = Date.now();
    const show = (states: State[]) => {
      into.states = states;
      setTurn((turn) => turn + 1);
    };
    try {
      const states = await list<State>("states", "states", abort.signal, into.at ? undefined : show);
      into.at = begun;
      show(states);
      setError(undefined);
      notBefore.current = Date.now() + 4 * (Date.now() - begun); // a list that is slow to read is read less often
    } catch (thrown) {
      if (abort.signal.aborted) return;
      const problem = failure(thrown);
      setError(problem);
      notBefore.current = Date.now() + (problem.retryAfter ?? 0) * 1000;
    } finally {
      if (running.current === abort) running.current = undefined;
    }
  };
  useEffect(() => {
    if (Date.now() - kept.at > EVERY * 1000) read(kept);
    return () => running.current?.abort();
  }, []);
  useEvery(EVERY, () => running.current || Date.now() < notBefore.current || read(kept));
  return { states: kept.states, complete: kept.at > 0, error, again: () => read(kept) };
}

/** Returns the rows to draw, those in view, and the height of one. */
function useView(table: RefObject<HTMLTableElement | null>, count: number): [number, number, number, number, number] {
  const [view, setView] = useState<[number, number, number, number, number]>([0, 60, 0, 0, 40]);
  const look = () => {
    const rows = table.current?.querySelectorAll("tr.state");
    const top = table.current?.tBodies[0]?.getBoundingClientRect().top ?? 0;
    const height = rows?.[0]?.getBoundingClientRect().height || 40;
    const all = matchMedia("print").matches;
    const [first, last] = all ? [0, count] : drawn(count, top, innerHeight, height, MORE);
    const next = [first, last, ...drawn(count, top, innerHeight, height, 0), height] as typeof view;
    setView((before) => (before.every((number, at) => number === next[at]) ? before : next));
  };
  useLayoutEffect(look, [count]);
  useEffect(() => {
    const everything = () => setView([0, count, 0, 0, 40]);
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    addEventListener("beforeprint", everything);
    addEventListener("afterprint", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
      removeEventListener("beforeprint", everything);
      removeEventListener("afterprint", look);
    };
  }, [count]);
  return view;
}

/** Asks who wrote the rows in view once they stay there, a few at a time. */
function useWriters(inView: State[]): (state: State) => ComponentChildren {
  const [, setTurn] = useState(0);
  const { writers } = kept;
  const key = (state: State) => `${state.name} ${state.modified}`;
  const wanted = inView.filter((state) => state.modified !== null && !writers.has(key(state)));
  const names = inView.map(key).join("\n");
  useEffect(() => {
    if (!wanted.length || !matchMedia("(min-width: 52rem)").matches) return;
    const abort = new AbortController();
    const left = [...wanted];
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
    const timer = setTimeout(() => {
      for (let asker = 0; asker < AT_ONCE; asker++) ask();
    }, 300);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [names]);
  return (state) => {
    const writer = writers.get(key(state));
    if (!writer) return <span class="faint">{writer === undefined && state.modified ? "…" : "–"}</span>;
    return <Person principal={writer.principal} owner={writer.owner} />;
  };
}

/** Moves the focus to the next state or the one before. */
function move(event: KeyboardEvent, table: HTMLTableElement | null, by: 1 | -1): boolean {
  const links = [...(table?.querySelectorAll<HTMLElement>("td.name a") ?? [])];
  const at = links.indexOf(document.activeElement as HTMLElement);
  links[at < 0 ? 0 : at + by]?.focus();
  event.preventDefault();
  return true;
}
