// Who holds which lock, oldest first; freezes apart, because a freeze of a year is no forgotten lock.

import { useState } from "preact/hooks";
import { BreakLock, FreezePattern, Unfreeze, UnfreezePattern } from "./actions";
import { list, type Schemas } from "./api";
import { now } from "./clock";
import { ages, counted, exactly } from "./format";
import { useLoaded } from "./load";
import { may, mayBreak, rolesFor, useMe } from "./me";
import { Age, Button, By, Empty, Name, Shown, StateLink, Status, Table } from "./ui";
import { identity, lockedBy, lockWords, operationWords, person } from "./words";

type Listed = Schemas["ListedLock"];
type Pattern = Schemas["PatternFreeze"];

/** Whether a state is locked or frozen, and since when. */
export function LockBadge({ lock }: { lock: Schemas["Lock"] }) {
  const { freeze, since } = lock;
  const told = freeze
    ? `${freeze.reason} (${identity(lockedBy(lock))}, since ${exactly(freeze.since)})`
    : `${lockWords(lock, identity)}, since ${exactly(since)}`;
  const text = freeze ? `frozen ${ages(freeze.since, now())}` : `locked ${ages(since, now())}`;
  const by = person(lockedBy(lock));
  return (
    <span class={freeze ? "badge frozen" : "badge locked"} title={told}>
      {`${freeze?.ended ? "freeze ended" : text} · ${by}`}
    </span>
  );
}

const load = (signal: AbortSignal) => Promise.all([list<Listed>("locks", signal), list<Pattern>("freezes", signal)]);

export function LocksPage() {
  const me = useMe();
  const locks = useLoaded(load, [], 10);
  const [asked, setAsked] = useState<Listed>();
  const [pattern, setPattern] = useState<Pattern | "new">();
  const shared = {
    onDone: locks.again,
    onClose: () => {
      setAsked(undefined);
      setPattern(undefined);
    },
  };
  const Asked = asked?.freeze ? Unfreeze : BreakLock;
  const act = (verb: string, lock: Listed) => (
    <Button aria-label={`${verb} ${lock.name}`} onClick={() => setAsked(lock)}>
      {`${verb} …`}
    </Button>
  );
  const State = (lock: Listed) => <StateLink name={lock.name} />;
  const lists = ([all, patterns]: Awaited<ReturnType<typeof load>>) => {
    const oldest = all.toSorted((a, b) => (a.since < b.since ? -1 : 1));
    const held = oldest.filter(({ freeze }) => !freeze);
    const states = oldest.flatMap((lock) => (lock.freeze ? { ...lock.freeze, owner: null, lock } : []));
    const frozen = [...states, ...patterns.map((one) => ({ ...one, lock: undefined, ended: false, one }))];
    return (
      <>
        <Status>{`${counted(held.length, "lock")}, ${counted(frozen.length, "freeze")}`}</Status>
        {held.length ? (
          <Table
            rows={held}
            name={({ name }) => name}
            columns={{
              State,
              Since: ({ since }) => <Age at={since} />,
              By: (lock) => <By of={lock} />,
              Operation: ({ operation, info }) => [
                <Name key="operation">{operationWords(operation)}</Name>,
                info && (
                  <small key="info">
                    <Name>{info}</Name>
                  </small>
                ),
              ],
              "": (lock) => mayBreak(me, lock.name, lock) && act("Break", lock),
            }}
          />
        ) : (
          <Empty title="Nobody holds a lock">A lock appears here while Terraform or OpenTofu plans or applies.</Empty>
        )}
        <div class="actions">
          {(frozen.length > 0 || may(me, "freeze")) && <h2>Frozen</h2>}
          {may(me, "freeze") && <Button onClick={() => setPattern("new")}>Freeze a pattern …</Button>}
        </div>
        {frozen.length > 0 && (
          <Table
            rows={frozen}
            name={({ id, lock }) => id + lock?.name}
            columns={{
              "State or pattern": (one) =>
                one.lock ? (
                  State(one.lock)
                ) : (
                  <code>
                    <Name>{one.pattern}</Name>
                  </code>
                ),
              Since: ({ since }) => since && <Age at={since} />,
              By: ({ by, owner, lock }) => <By of={lock ? lockedBy(lock) : { principal: by, owner }} />,
              Until: ({ until, ended }) =>
                (ended ? "ended " : "") + (until ? exactly(until) : "an operator unfreezes it"),
              Reason: ({ reason }) => <Name>{reason}</Name>,
              "": (frozen) => {
                if (frozen.lock) return may(me, "freeze", frozen.lock.name) && act("Unfreeze", frozen.lock);
                if (frozen.liftable)
                  return (
                    <Button aria-label={`Unfreeze ${frozen.pattern}`} onClick={() => setPattern(frozen.one)}>
                      Unfreeze …
                    </Button>
                  );
                return me && <small>{`Needs the role ${rolesFor(me, "freeze")} for ${frozen.pattern}`}</small>;
              },
            }}
          />
        )}
      </>
    );
  };
  return (
    <>
      <h1>Locks</h1>
      <Shown of={locks} what="locks" show={lists} />
      {asked && <Asked name={asked.name} lock={asked} {...shared} />}
      {pattern === "new" && <FreezePattern {...shared} />}
      {typeof pattern === "object" && <UnfreezePattern freeze={pattern} {...shared} />}
    </>
  );
}
