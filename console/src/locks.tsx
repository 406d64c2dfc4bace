// Who holds which lock, oldest first; freezes apart, because a freeze of a year is no forgotten lock.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { BreakLock, Unfreeze } from "./actions";
import { get, list, type Schemas } from "./api";
import { now } from "./clock";
import { ages, counted, exactly } from "./format";
import { has, type Me, maintains, useMe } from "./me";
import { href } from "./route";
import { Age, Empty, Person, Problem, useEvery, useLoaded, Waiting } from "./ui";

type Lock = Schemas["Lock"];
type Listed = Schemas["ListedLock"];

/** Whether a state is locked or frozen, and since when. */
export function LockBadge({ lock }: { lock: Lock }) {
  const { freeze } = lock;
  const holder = lock.owner ?? lock.who;
  if (!freeze) {
    return (
      <span class="badge locked" title={`by ${holder}, ${lock.operation}, since ${exactly(lock.since)}`}>
        locked {ages(lock.since, now())}
      </span>
    );
  }
  return (
    <span
      class="badge frozen"
      title={`${freeze.reason} (${freeze.by ?? "unknown"}, since ${exactly(freeze.since)})`}
    >
      {freeze.ended ? "freeze ended" : `frozen ${ages(freeze.since, now())}`}
    </span>
  );
}

/** Returns whether the page offers a caller to remove a lock. A writer may remove their own. */
export const mayBreak = (me: Me | null, name: string, lock: Lock): boolean =>
  maintains(me, name) || (has(me, ["writer"], name) && lock.principal === me?.principal);

export function LocksPage() {
  const me = useMe();
  const locks = useLoaded((signal) => list<Listed>("locks", "locks", signal), []);
  const isMaintainer = maintains(me);
  const patterns = useLoaded(
    (signal) =>
      isMaintainer ? get<Schemas["PatternFreezes"]>("freezes", {}, signal) : Promise.resolve({ freezes: [] }),
    [isMaintainer],
  );
  const [asked, setAsked] = useState<Listed>();
  const again = () => {
    locks.again();
    patterns.again();
  };
  useEvery(10, again);
  if (!locks.data) return <Waiting title="Locks" error={locks.error} again={locks.again} />;
  const oldest = [...locks.data].sort((a, b) => (a.since < b.since ? -1 : 1));
  const held = oldest.filter(({ freeze }) => !freeze);
  const frozen = oldest.filter(({ freeze }) => freeze);
  const Asked = asked?.freeze ? Unfreeze : BreakLock;
  return (
    <>
      <h1>Locks</h1>
      {locks.error && <Problem error={locks.error} again={locks.again} />}
      <p role="status" class="faint">
        {counted(held.length, "lock")}, {counted(frozen.length, "freeze")}
      </p>
      {held.length ? (
        <Table heads={["State", "Since", "Who", "Principal", "Operation"]}>
          {held.map((lock) => (
            <tr key={lock.name}>
              <Name name={lock.name} />
              <td data-label="Since">
                <Age at={lock.since} />
              </td>
              <td data-label="Who">{lock.who}</td>
              <td data-label="Principal">
                <Person principal={lock.principal} owner={lock.owner} />
              </td>
              <td data-label="Operation">
                {lock.operation} {lock.info && <small>{lock.info}</small>}
              </td>
              <td class="act">
                {mayBreak(me, lock.name, lock) && (
                  <button
                    type="button"
                    aria-label={`Break the lock of ${lock.name}`}
                    onClick={() => setAsked(lock)}
                  >
                    Break …
                  </button>
                )}
              </td>
            </tr>
          ))}
        </Table>
      ) : (
        <Empty title="Nobody holds a lock">
          <p>A lock appears here while Terraform or OpenTofu plans or applies.</p>
        </Empty>
      )}
      {frozen.length > 0 && (
        <>
          <h2>Frozen states</h2>
          <Table heads={["State", "Since", "By", "Until", "Reason"]}>
            {frozen.map(({ freeze, ...lock }) => (
              <tr key={lock.name}>
                <Name name={lock.name} />
                <td data-label="Since">
                  <Age at={lock.since} />
                </td>
                <td data-label="By">{freeze?.by ?? "unknown"}</td>
                <td data-label="Until">
                  <Until at={freeze?.until ?? null} ended={freeze?.ended} />
                </td>
                <td data-label="Reason">{freeze?.reason}</td>
                <td class="act">
                  {maintains(me, lock.name) && (
                    <button
                      type="button"
                      aria-label={`Unfreeze ${lock.name}`}
                      onClick={() => setAsked({ freeze, ...lock } as Listed)}
                    >
                      Unfreeze …
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </Table>
        </>
      )}
      {patterns.data && patterns.data.freezes.length > 0 && (
        <>
          <h2>Frozen patterns</h2>
          <p>
            No state that matches one can be created. <code>holdfast state unfreeze</code> lifts it.
          </p>
          <Table heads={["Pattern", "By", "Until", "Reason"]}>
            {patterns.data.freezes.map((freeze) => (
              <tr key={freeze.id}>
                <th scope="row">{freeze.pattern}</th>
                <td data-label="By">{freeze.by}</td>
                <td data-label="Until">
                  <Until at={freeze.until} />
                </td>
                <td data-label="Reason">{freeze.reason}</td>
                <td />
              </tr>
            ))}
          </Table>
        </>
      )}
      {asked && <Asked name={asked.name} lock={asked} onClose={() => setAsked(undefined)} onDone={again} />}
    </>
  );
}

const Table = ({ heads, children }: { heads: string[]; children: ComponentChildren }) => (
  <div class="wide">
    <table class="stack">
      <thead>
        <tr>
          {heads.map((head) => (
            <th key={head} scope="col">
              {head}
            </th>
          ))}
          <td />
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </div>
);

const Name = ({ name }: { name: string }) => (
  <th scope="row">
    <a href={href({ page: "state", name })}>{name}</a>
  </th>
);

function Until({ at, ended = false }: { at: string | null; ended?: boolean }) {
  if (at === null) return <span>somebody unfreezes it</span>;
  return (
    <time dateTime={at} title={exactly(at)}>
      {ended ? "ended " : ""}
      {new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}
    </time>
  );
}
