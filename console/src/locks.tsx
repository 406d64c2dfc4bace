// Who holds which lock, oldest first; freezes apart, because a freeze of a year is no forgotten lock.

import { useState } from "preact/hooks";
import { BreakLock, FreezePattern, Unfreeze, UnfreezePattern } from "./actions";
import { list, type Schemas } from "./api";
import { now } from "./clock";
import { ages, counted, exactly } from "./format";
import { useLoaded } from "./load";
import { may, mayBreak, rolesFor, useMe } from "./me";
import { Age, Button, By, Empty, Name, Shown, StateLink, Status, Table } from "./ui";
import { identity, lockedBy, lockWords, operationWords, person, type By as Who } from "./words";

type Listed = Schemas["ListedLock"];
type Pattern = Schemas["PatternFreeze"];
type Freeze = Pick<Pattern, "id" | "reason" | "until" | "since"> & { by: Who };
/** The freeze of a state, by its lock, or of a pattern. */
type Frozen = Freeze & { name: string; ended?: boolean; lock?: Listed; pattern?: Pattern };

/** Whether a state is locked or frozen, and since when. */
export function LockBadge({ lock }: { lock: Schemas["Lock"] }) {
  const { freeze } = lock;
  const { since } = freeze ?? lock;
  const text = `${freeze ? "frozen" : "locked"} ${ages(since, now())}`;
  const by = person(lockedBy(lock));
  return (
    <span
      class={freeze ? "badge frozen" : "badge locked"}
      title={`${lockWords(lock, identity)}, since ${exactly(since)}`}>
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
  const act = (verb: string, name: string, onClick: () => void) => (
    <Button aria-label={`${verb} ${name}`} onClick={onClick}>
      {`${verb} …`}
    </Button>
  );
  const State = (lock: Listed) => <StateLink name={lock.name} />;
  const lists = ([all, patterns]: Awaited<ReturnType<typeof load>>) => {
    const oldest = all.toSorted((a, b) => (a.since < b.since ? -1 : 1));
    const held = oldest.filter(({ freeze }) => !freeze);
    const states = oldest.flatMap((lock) =>
      lock.freeze ? { ...lock.freeze, by: lockedBy(lock), name: lock.name, lock } : [],
    );
    const frozen: Frozen[] = [
      ...patterns.map((pattern) => ({
        ...pattern,
        by: { principal: pattern.by, owner: pattern.owner },
        name: pattern.pattern,
        pattern,
      })),
      ...states,
    ];
    const mayLift = ({ name, pattern }: Frozen) => (pattern ? pattern.liftable : may(me, "freeze", name));
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
              "": (lock) => mayBreak(me, lock.name, lock) && act("Break", lock.name, () => setAsked(lock)),
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
            name={({ id, name }) => id + name}
            columns={{
              "State or pattern": (one) =>
                one.lock ? (
                  State(one.lock)
                ) : (
                  <code>
                    <Name>{one.name}</Name>
                  </code>
                ),
              Since: ({ since }) => since && <Age at={since} />,
              By: ({ by }) => <By of={by} />,
              Until: ({ until, ended }) => (until ? [ended && "ended ", <Age key={0} at={until} />] : "no end"),
              Reason: ({ id, reason, lock }) => {
                const of = lock && patterns.find((pattern) => pattern.id === id);
                return <Name>{of ? `by the pattern ${of.pattern}` : reason}</Name>;
              },
              "": (one) =>
                mayLift(one) &&
                act("Unfreeze", one.name, () => (one.pattern ? setPattern(one.pattern) : setAsked(one.lock))),
            }}
          />
        )}
        <p class="faint">
          {me &&
            !frozen.every(mayLift) &&
            `Unfreezing needs the role ${rolesFor(me, "freeze")} for the state or pattern.`}
        </p>
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
