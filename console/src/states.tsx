// The list of states. Only rows near the view are drawn, so that 5,000 of them answer to a keystroke at once.

import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, list, type Schemas } from "./api";
import { now } from "./clock";
import { Deleter, type Deletion, deletionOf } from "./deleted";
import { lookFor } from "./find";
import { counted } from "./format";
import { type Kept, type Load, useLoaded, useQuery } from "./load";
import { LockBadge } from "./locks";
import { may, useMe } from "./me";
import { failure } from "./problems";
import type { Query } from "./route";
import { groupOf, inGroups, inView, matching, NEEDS, ordered, orderOf, places, type Row, type State } from "./rows";
import { onSession } from "./session";
import { Age, Button, Empty, Shown, Size, StateLink, Status } from "./ui";

const EVERY = 10; // seconds between two readings of the list
const MARGIN = 12; // rows that are drawn above and below the view
const AT_ONCE = 2; // requests for those who wrote the rows in view: each may read a whole state

type Writer = Deletion;
type Deleted = { states: State[]; isWhole: boolean };

/** What was read last, so that coming back to the list shows it at once. It is one session's. */
let kept: Kept<State[]> = { at: 0 };
let keptDeleted: Kept<Deleted> = { at: 0 };
let writers = new Map<string, Writer | null>();
/** The groups that somebody opened or folded. */
let opened = new Map<string, boolean>();
onSession(() => {
  kept = { at: 0 };
  keptDeleted = { at: 0 };
  writers = new Map();
  opened = new Map();
});

export function StatesPage(props: { query: Query }) {
  const [query, change] = useQuery({ page: "states" }, props.query);
  const { q: typed = "", by = "name", only = "" } = query;
  const read: Load<State[]> = (signal, show) => list("states", signal, kept.at ? undefined : show);
  const states = useLoaded(read, [], EVERY, kept);
  const wantsDeleted = only === "deleted";
  const deleted = useDeleted(wantsDeleted, kept.at > 0);
  const [asked, what] = wantsDeleted ? ([deleted, "deleted state"] as const) : ([states, "state"] as const);
  const [turn, setTurn] = useState(0);
  const all = useMemo(() => {
    const needs = Object.hasOwn(NEEDS, only) ? NEEDS[only as keyof typeof NEEDS] : undefined;
    const chosen = wantsDeleted ? deleted.data?.states : states.data;
    return ordered(needs ? (chosen ?? []).filter((state) => needs(state, now())) : (chosen ?? []), by);
  }, [states.data, deleted.data, by, only]);
  const shown = useMemo(() => matching(all, typed), [all, typed]);
  const rows = useMemo(() => {
    const isFlat = orderOf(by).by !== "name" || new Set(shown.map(({ name }) => groupOf(name))).size < 2;
    return isFlat ? shown.map((state) => ({ state })) : inGroups(shown, opened, Boolean(typed.trim() || only));
  }, [shown, by, typed, only, turn]);
  const fold = (group: string, isOpen: boolean) => {
    opened.set(group, isOpen);
    setTurn(turn + 1);
  };
  const table = () => {
    if (shown.length) {
      const of = { rows, by, fold, areDeleted: wantsDeleted };
      return <States {...of} sort={(order) => change({ by: order })} />;
    }
    if (all.length) return <NoMatch typed={typed} showAll={() => change({ q: "" })} />;
    if (!only) return <NoStates />;
    return (
      <Empty title="No such state now">
        <Button onClick={() => change({ only: "" })}>Show all states</Button>
      </Empty>
    );
  };
  return (
    <>
      <h1>States</h1>
      <search class="tools">
        <input
          type="search"
          aria-label="Filter the states by name"
          aria-keyshortcuts="/"
          placeholder={`Filter by name${matchMedia("(hover: none)").matches ? "" : ": press /"}`}
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onInput={(event) => change({ q: event.currentTarget.value })}
          onKeyDown={move}
        />
        <Needs states={states.data} deleted={deleted.data} only={only} choose={(to) => change({ only: to })} />
        <Status>
          {shown.length < all.length && `${shown.length.toLocaleString("en")} of `}
          {asked.data && counted(all.length, what)}
          {states.data && !kept.at && " so far …"}
        </Status>
      </search>
      <Shown<unknown> of={asked} what={`${what}s`} show={table} />
    </>
  );
}

/**
 * Reads the deleted states: all of them if they are shown, else the first page, which tells whether there are any. The
 * states that people wait for come first.
 */
function useDeleted(isShown: boolean, isListed: boolean) {
  const read: Load<Deleted> = async (signal) => {
    if (!isShown && !isListed) return keptDeleted.data ?? new Promise(() => {});
    if (isShown) return { states: await list<State>("states", signal, undefined, { deleted: "true" }), isWhole: true };
    const { states, next } = await get<Schemas["StatePage"]>("states", { deleted: "true" }, signal);
    return { states, isWhole: next === null };
  };
  return useLoaded(read, [isShown, isListed], 0, keptDeleted);
}

type Choosing = {
  states: State[] | undefined;
  deleted: Deleted | undefined;
  only: string;
  choose: (only: string) => void;
};

/** What needs somebody: each shows those states alone, and all again. */
function Needs({ states, deleted, only, choose }: Choosing) {
  const count = (need: keyof typeof NEEDS) => states?.filter((state) => NEEDS[need](state, now())).length ?? 0;
  const [old, frozen, gone] = [count("old"), count("frozen"), deleted?.states.length ?? 0];
  const counts = {
    old: [old, `${counted(old, "lock")} older than 1 h`],
    frozen: [frozen, `${frozen.toLocaleString("en")} frozen`],
    deleted: [gone, deleted?.isWhole ? `${gone.toLocaleString("en")} deleted` : "deleted"],
  } as const;
  const chosen = (need: string) => only === need;
  return (
    <div class="needs">
      {Object.entries(counts).map(
        ([need, [many, words]]) =>
          (many > 0 || chosen(need)) && (
            <Button
              key={need}
              class={need}
              aria-pressed={chosen(need)}
              onClick={() => choose(chosen(need) ? "" : need)}>
              {states ? words : need}
            </Button>
          ),
      )}
    </div>
  );
}

type Sorting = { by: string; sort: (by: string) => void };

/** The head of a column, which sorts by it, and the other way if it does already. */
function Sort({ of, by, sort, children }: Sorting & { of: string; children: string }) {
  const order = orderOf(by);
  const isChosen = order.by === of;
  const turned = isChosen && !by.startsWith("-") ? `-${of}` : of;
  return (
    <th class={of} aria-sort={isChosen ? (order.descends ? "descending" : "ascending") : undefined}>
      <Button onClick={() => sort(turned)}>{children}</Button>
    </th>
  );
}

type Listing = Sorting & { rows: Row[]; areDeleted: boolean; fold: (group: string, isOpen: boolean) => void };

/** The table: it moves with the page, so that it can be scrolled like any. */
function States({ rows, fold, areDeleted, ...sorting }: Listing) {
  const table = useRef<HTMLTableElement>(null);
  const { from, to, tops } = useView(table, rows);
  const end = tops.at(-1) ?? 0;
  const first = Math.max(0, from - MARGIN);
  const last = Math.min(rows.length, to + MARGIN);
  const isLocked = rows.some((row) => "state" in row && row.state.lock);
  const me = useMe();
  const mayTell = ({ name, modified, deleted }: State) =>
    modified !== null && (!deleted || may(me, "read_activity", name));
  const empty = areDeleted ? ` gone${isLocked ? "" : " unlocked"}${may(me, "read_activity") ? "" : " untold"}` : "";
  const seen = rows.slice(from, to).flatMap((row) => ("state" in row ? row.state : []));
  const writerOf = useWriters(seen, mayTell);
  const heads = { name: "State", size: "Size", modified: areDeleted ? "Deleted" : "Last write", lock: "Lock" };
  return (
    <table ref={table} class={`states${empty}`} aria-rowcount={rows.length + 1} onKeyDown={move}>
      <thead>
        <tr aria-rowindex={1}>
          {Object.entries(heads).map(([of, head]) => (
            <Sort key={of} {...{ of, ...sorting }}>
              {head}
            </Sort>
          ))}
          <th class="by">By</th>
        </tr>
      </thead>
      <Space height={tops[first] ?? 0} />
      <tbody>
        {rows.slice(first, last).map((row, at) => {
          const index = first + at + 2;
          if ("group" in row) return <GroupRow key={row.group} {...row} index={index} fold={fold} />;
          return <StateRow key={row.state.name} {...row} index={index} writer={writerOf(row.state)} />;
        })}
      </tbody>
      <Space height={end - (tops[last] ?? end)} />
    </table>
  );
}

type Grouped = Extract<Row, { group: string }> & { index: number; fold: Listing["fold"] };

const GroupRow = ({ group, count, isOpen, index, fold }: Grouped) => (
  <tr class="state group" aria-rowindex={index}>
    <td class="name">
      <Button aria-expanded={isOpen} onClick={() => fold(group, !isOpen)}>
        {group} <small>{count.toLocaleString("en")}</small>
      </Button>
    </td>
    <td class="size" />
    <td class="modified" />
    <td class="lock" />
    <td class="by" />
  </tr>
);

type Listed = Extract<Row, { state: State }> & { index: number; writer: ComponentChildren };

function StateRow({ state, inGroup, index, writer }: Listed) {
  const { name, lock, deleted } = state;
  const at = state.modified && <Age at={state.modified} inTable />;
  const prefix = inGroup ? groupOf(name) : "";
  const modified = at ? deleted ? <>deleted {at}</> : at : <span class="faint">never written</span>;
  const size = <Size bytes={state.size} />;
  return (
    <tr class="state" aria-rowindex={index}>
      <td class={inGroup ? "name inside" : "name"} title={name}>
        <StateLink name={name}>
          {prefix && <span class="unseen">{prefix}</span>}
          <Cut>{name.slice(prefix.length)}</Cut>
        </StateLink>
        <small class="narrow">
          <span class="whole">{modified}</span>
          {state.size !== null && <span class="whole">· {size}</span>}
          {lock ? <LockBadge lock={lock} /> : state.modified && <span class="by-writer">· {writer}</span>}
        </small>
      </td>
      <td class="size">{size}</td>
      <td class="modified">{at || modified}</td>
      <td class="lock">{lock && <LockBadge lock={lock} />}</td>
      <td class="by">{writer}</td>
    </tr>
  );
}

/** A name whose middle is cut where it is too long: names differ at their ends. */
function Cut({ children: name }: { children: string }) {
  const end = /(?<=[/\-_.]).{1,24}$/.exec(name)?.[0] ?? name.slice(-24);
  return (
    <span class="cut">
      <span>{name.slice(0, -end.length)}</span>
      {end}
    </span>
  );
}

function NoMatch({ typed, showAll }: { typed: string; showAll: () => void }) {
  const mayFind = may(useMe(), "read");
  return (
    <Empty title={`No state matches “${typed}”`}>
      <Button onClick={showAll}>Show all states</Button>{" "}
      {mayFind && <Button onClick={() => lookFor(typed)}>{`Find resources named “${typed}”`}</Button>}
    </Empty>
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
    <code>holdfast backend-config &lt;state&gt;</code> prints the block for a configuration. A state appears here after
    its first apply.
  </Empty>
);

/** Returns which rows are in view, and where each begins. */
function useView(table: RefObject<HTMLTableElement | null>, rows: Row[]) {
  const [heights, setHeights] = useState({ state: 40, group: 40 });
  const [view, setView] = useState({ from: 0, to: 60 });
  const tops = useMemo(() => places(rows, heights.state, heights.group), [rows, heights]);
  const look = () => {
    const top = table.current?.tBodies[0]?.getBoundingClientRect().top ?? 0;
    const tall = (row: string, before: number) =>
      table.current?.querySelector(row)?.getBoundingClientRect().height || before;
    const state = tall("tr.state:not(.group)", heights.state);
    const group = tall("tr.group", heights.group);
    if (state !== heights.state || group !== heights.group) setHeights({ state, group });
    const [from, to] = inView(tops, top, innerHeight);
    setView((before) => (before.from === from && before.to === to ? before : { from, to }));
  };
  // An effect would run after the page is painted, and miss a scroll of before.
  useLayoutEffect(() => {
    look();
    const abort = new AbortController();
    addEventListener("scroll", look, { passive: true, signal: abort.signal });
    addEventListener("resize", look, abort);
    return () => abort.abort();
  }, [tops]);
  return { ...view, tops };
}

/** Asks who wrote the rows in view, or deleted them, once they stay there, a few at a time. */
function useWriters(seen: State[], mayTell: (state: State) => boolean): (state: State) => ComponentChildren {
  const [, setTurn] = useState(0);
  const key = (state: State) => `${state.name} ${state.modified}`;
  const told = seen.filter(mayTell);
  useEffect(() => {
    const left = told.filter((state) => !writers.has(key(state)));
    if (!left.length) return;
    const abort = new AbortController();
    const writerOf = ({ name, modified, deleted }: State) =>
      deleted ? deletionOf(name, modified ?? "", abort.signal) : get<Writer>(`states/${name}`, {}, abort.signal);
    const ask = async () => {
      for (let state = left.shift(); state && !abort.signal.aborted; state = left.shift()) {
        try {
          writers.set(key(state), await writerOf(state));
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
  }, [told.map(key).join("\n")]);
  return (state) => {
    const writer = writers.get(key(state));
    if (writer) return <Deleter of={writer} />;
    return <span class="faint">{writer === undefined && mayTell(state) ? "…" : "–"}</span>;
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
