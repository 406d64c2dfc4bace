// Who holds which lock, oldest first; freezes apart, because a freeze of a year is no forgotten lock.

import { type ComponentChildren, cloneElement, isValidElement, toChildArray, type VNode } from "preact";
import { useState } from "preact/hooks";
import { BreakLock, Unfreeze } from "./actions";
import { list, type Schemas } from "./api";
import { now } from "./clock";
import { ages, counted, exactly, when } from "./format";
import { has, type Me, maintains, useMe } from "./me";
import { href } from "./route";
import { Age, Empty, Person, Problem, useEvery, useLoaded, Waiting } from "./ui";

type Lock = Schemas["Lock"];
type Listed = Schemas["ListedLock"];

/** Whether a state is locked or frozen, and since when. */
export function LockBadge({ lock }: { lock: Lock }) {
  const { freeze, owner, who, operation, since } = lock;
  const told = freeze
    ? `${freeze.reason} (${freeze.by ?? "unknown"}, since ${exactly(freeze.since)})`
    : `by ${owner ?? who}, ${operation}, since ${exactly(since)}`;
  const text = freeze ? `frozen ${ages(freeze.since, now())}` : `locked ${ages(since, now())}`;
  return (
    <span class={freeze ? "badge frozen" : "badge locked"} title={told}>
      {freeze?.ended ? "freeze ended" : text}
    </span>
  );
}

/** Returns whether the page offers a caller to remove a lock. A writer may remove their own. */
export const mayBreak = (me: Me | null, name: string, lock: Lock): boolean =>
  maintains(me, name) || (has(me, ["writer"], name) && lock.principal === me?.principal);

export function LocksPage() {
  const me = useMe();
  const locks = useLoaded((signal) => list<Listed>("locks", "locks", signal), []);
  const [asked, setAsked] = useState<Listed>();
  useEvery(10, () => locks.loading || locks.again());
  if (!locks.data) return <Waiting title="Locks" error={locks.error} again={locks.again} />;
  const oldest = [...locks.data].sort((a, b) => (a.since < b.since ? -1 : 1));
  const held = oldest.filter(({ freeze }) => !freeze);
  const frozen = oldest.filter(({ freeze }) => freeze);
  const Asked = asked?.freeze ? Unfreeze : BreakLock;
  const act = (lock: Listed, may: boolean, verb: string) => (
    <td>
      {may && (
        <button type="button" aria-label={`${verb} ${lock.name}`} onClick={() => setAsked(lock)}>
          {verb} …
        </button>
      )}
    </td>
  );
  return (
    <>
      <h1>Locks</h1>
      {locks.error && <Problem error={locks.error} again={locks.again} />}
      <p role="status" class="faint">
        {counted(held.length, "lock")}, {counted(frozen.length, "freeze")}
      </p>
      {held.length ? (
        <Table heads={["State", "Since", "Who", "Principal", "Operation", ""]}>
          {held.map((lock) => (
            <tr key={lock.name}>
              <Name name={lock.name} />
              <td>
                <Age at={lock.since} />
              </td>
              <td>{lock.who}</td>
              <td>
                <Person principal={lock.principal} owner={lock.owner} />
              </td>
              <td>
                {lock.operation} {lock.info && <small>{lock.info}</small>}
              </td>
              {act(lock, mayBreak(me, lock.name, lock), "Break")}
            </tr>
          ))}
        </Table>
      ) : (
        <Empty title="Nobody holds a lock">
          <p>A lock appears here while Terraform or OpenTofu plans or applies.</p>
        </Empty>
      )}
      {frozen.length > 0 && <h2>Frozen states</h2>}
      {frozen.length > 0 && (
        <Table heads={["State", "Since", "By", "Until", "Reason", ""]}>
          {frozen.map((lock) => (
            <tr key={lock.name}>
              <Name name={lock.name} />
              <td>
                <Age at={lock.since} />
              </td>
              <td>{lock.freeze?.by ?? "unknown"}</td>
              <td title={lock.freeze?.until ? exactly(lock.freeze.until) : undefined}>
                {lock.freeze?.ended ? "ended " : ""}
                {lock.freeze?.until ? when(lock.freeze.until) : "somebody unfreezes it"}
              </td>
              <td>{lock.freeze?.reason}</td>
              {act(lock, maintains(me, lock.name), "Unfreeze")}
            </tr>
          ))}
        </Table>
      )}
      {asked && <Asked name={asked.name} lock={asked} onClose={() => setAsked(undefined)} onDone={locks.again} />}
    </>
  );
}

/** A table whose cells know their heads, because a narrow screen shows each row as a list. */
export const Table = ({ heads, children }: { heads: string[]; children: ComponentChildren }) => (
  <div class="wide">
    <table class="stack">
      <thead>
        <tr>{heads.map((head) => (head ? <th scope="col">{head}</th> : <td />))}</tr>
      </thead>
      <tbody>
        {toChildArray(children).map((row) => (isValidElement(row) ? cloneElement(row, {}, labelled(row, heads)) : row))}
      </tbody>
    </table>
  </div>
);

const labelled = (row: VNode<{ children?: ComponentChildren }>, heads: string[]) =>
  toChildArray(row.props.children).map((cell, at) =>
    isValidElement(cell) && heads[at] ? cloneElement(cell as VNode<object>, { "data-label": heads[at] }) : cell,
  );

const Name = ({ name }: { name: string }) => (
  <th scope="row">
    <a href={href({ page: "state", name })}>{name}</a>
  </th>
);
