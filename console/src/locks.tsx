// Who holds which lock, oldest first; freezes apart, because a freeze of a year is no forgotten lock.

import { useState } from "preact/hooks";
import { BreakLock, Unfreeze } from "./actions";
import { list, type Schemas } from "./api";
import { now } from "./clock";
import { ages, counted, exactly, when } from "./format";
import { useLoaded } from "./load";
import { maintains, mayBreak, useMe } from "./me";
import { Age, Button, Empty, Person, Shown, StateLink, Status, Table } from "./ui";

type Listed = Schemas["ListedLock"];

/** Whether a state is locked or frozen, and since when. */
export function LockBadge({ lock: { freeze, owner, who, operation, since } }: { lock: Schemas["Lock"] }) {
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

export function LocksPage() {
  const me = useMe();
  const locks = useLoaded((signal) => list<Listed>("locks", signal), [], 10);
  const [asked, setAsked] = useState<Listed>();
  const Asked = asked?.freeze ? Unfreeze : BreakLock;
  const act = (verb: string, lock: Listed) => (
    <Button aria-label={`${verb} ${lock.name}`} onClick={() => setAsked(lock)}>
      {`${verb} …`}
    </Button>
  );
  const name = (lock: Listed) => lock.name;
  const State = (lock: Listed) => <StateLink name={lock.name} />;
  const Since = (lock: Listed) => <Age at={lock.since} />;
  const lists = (all: Listed[]) => {
    const oldest = all.toSorted((a, b) => (a.since < b.since ? -1 : 1));
    const held = oldest.filter(({ freeze }) => !freeze);
    const frozen = oldest.filter(({ freeze }) => freeze);
    return (
      <>
        <Status>{`${counted(held.length, "lock")}, ${counted(frozen.length, "freeze")}`}</Status>
        {held.length ? (
          <Table
            rows={held}
            name={name}
            columns={{
              State,
              Since,
              Who: ({ who }) => who,
              Principal: (lock) => <Person {...lock} />,
              Operation: ({ operation, info }) => [operation, info && <small>{info}</small>],
              "": (lock) => mayBreak(me, lock.name, lock) && act("Break", lock),
            }}
          />
        ) : (
          <Empty title="Nobody holds a lock">A lock appears here while Terraform or OpenTofu plans or applies.</Empty>
        )}
        {frozen.length > 0 && <h2>Frozen states</h2>}
        {frozen.length > 0 && (
          <Table
            rows={frozen}
            name={name}
            columns={{
              State,
              Since,
              By: ({ freeze }) => freeze?.by ?? "unknown",
              Until: ({ freeze }) =>
                (freeze?.ended ? "ended " : "") + (freeze?.until ? when(freeze.until) : "somebody unfreezes it"),
              Reason: ({ freeze }) => freeze?.reason,
              "": (lock) => maintains(me, lock.name) && act("Unfreeze", lock),
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
      {asked && <Asked name={asked.name} lock={asked} onClose={() => setAsked(undefined)} onDone={locks.again} />}
    </>
  );
}
