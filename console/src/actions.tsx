// The changes: each says what will happen, sends what the command sends, and tells what came of it.

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { follow, get, list, type Schemas, send } from "./api";
import { now } from "./clock";
import { counted, exactly } from "./format";
import { useLoaded } from "./load";
import { may, useMe } from "./me";
import { failure, words } from "./problems";
import { Age, Button, By, Choice, Dialog, entered, Facts, Field, Name, Submit } from "./ui";
import * as say from "./words";

type State = Schemas["StateDescription"];
type Version = Schemas["Version"];
type Shared = { name: string; onClose: () => void; onDone: () => void };
type OfLock = Shared & { lock: Schemas["Lock"] };
type Entered = Record<string, string>;

const LOOK = "Run terraform plan to see what its holder has changed.";
const PLAN = "The infrastructure is not changed: run terraform plan afterwards.";
const ENDS = {
  1: "in 1 hour",
  8: "in 8 hours",
  24: "in 1 day",
  168: "in 7 days",
  never: "when an operator unfreezes it",
};

type Asking<D> = Shared & {
  title: string;
  verb: string;
  /** Whether it takes something away that no other action brings back. */
  loses?: boolean;
  make: (given: Entered) => D;
  send: (document: D) => Promise<string>;
  /** What did not happen if the API refuses it, and which version was current when the person was asked. */
  undone: string;
  seen?: string;
  /** What to do where a refusal and the state as it is now need more than words; returns the words for it. */
  look?: (now?: State) => string | undefined;
  children: ComponentChildren;
};

/** A dialog that asks, sends one document, the same in each retry, and tells the result. */
function Ask<D>(props: Asking<D>) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const [done, setDone] = useState("");
  const sent = useRef<D | null>(null); // until it is known what came of it
  const submit = async (event: Event) => {
    const given = entered(event);
    const missing =
      sent.current === null ? say.reasonProblem(given.reason ?? given.why ?? "", given.reason === undefined) : "";
    setProblem(missing);
    if (missing || busy) return;
    setBusy(true);
    sent.current ??= props.make(given);
    try {
      setDone(await props.send(sent.current));
      props.onDone();
    } catch (thrown) {
      const error = failure(thrown);
      const { title, advice } = words(error);
      if (error.status >= 400 && error.status < 500 && error.status !== 429) {
        sent.current = null;
        const state = props.name ? await get<State>(`states/${props.name}`).catch(() => undefined) : undefined;
        const how = props.look?.(state);
        const { code, message } = error;
        setProblem((code === "frozen" && how) || say.refusal(code, message, props.undone, state, props.seen));
        props.onDone();
      } else {
        setProblem(`${title}. ${advice} It may have taken effect; trying again is safe.`);
      }
    }
    setBusy(false);
  };
  const close = (
    <Button autofocus disabled={busy} onClick={props.onClose} ref={(button) => (done ? button?.focus() : undefined)}>
      {done ? "Close" : "Cancel"}
    </Button>
  );
  return (
    <Dialog title={props.title} onClose={props.onClose} busy={busy}>
      <p role="status">
        <Told>{done}</Told>
      </p>
      {done ? (
        close
      ) : (
        <form class="form" onSubmit={submit} noValidate>
          <fieldset disabled={busy || sent.current !== null}>{props.children}</fieldset>
          <p class="wrong" role="alert">
            {problem}
          </p>
          <p class="actions">
            <Submit class={props.loses ? "main danger" : "main"} disabled={busy}>
              {busy ? "Sending …" : sent.current ? "Try again" : props.verb}
            </Submit>
            {close}
          </p>
        </form>
      )}
    </Dialog>
  );
}

/** A reason that has to be given. It is the last field: what is wrong with it stands below it. */
const Reason = ({ hint }: { hint: string }) => (
  <Field label="Reason" name="reason" hint={`One line, ${hint}.`} maxLength={200} autofocus />
);

/** A reason that may be left out. */
const Why = () => (
  <Field label="Reason (optional)" name="why" hint="One line, which the audit trail shows." maxLength={200} />
);

/** A sentence with its command as code. */
const Told = ({ children }: { children: string }) => (
  <>{children.split(/(terraform plan)/).map((part, at) => (at % 2 ? <code key={at}>{part}</code> : part))}</>
);

/** Who is meant in a dialog with all that is known of them: the sentence above has their names. */
function Identities({ of, lock = "" }: { of: Record<string, say.By>; lock?: string }) {
  const people = Object.entries(of).map(([what, by]): [string, string] => [what, say.identity(by)]);
  const named = [...people, ["Lock ID", lock] as const].filter(([, text]) => text);
  return (
    <div class="identities">
      <Facts facts={Object.fromEntries(named.map(([what, text]) => [what, <Name key={what}>{text}</Name>]))} />
    </div>
  );
}

type Removal = Shared & { title: string; verb: string; loses?: boolean; children: ComponentChildren };

/** Removes exactly the lock or freeze that was seen, and says who was faster where the audit trail says so. */
function Remove(props: Removal & { route: string; query: { id: string; version?: string }; done: string }) {
  const { name, route, query, done } = props;
  const mayLook = may(useMe(), "read_activity");
  const make = ({ why }: Entered) => (why ? { ...query, reason: why } : query);
  const remove = async (wanted: Record<string, string>) => {
    const path = `${route}/${name}?${new URLSearchParams(wanted)}`;
    if ((await send<Schemas["Removed"]>("DELETE", path)).removed) return done;
    const trail = mayLook && (await get<Schemas["Activity"]>("activity", { state: name }).catch(() => undefined));
    return `The ${route === "freeze" ? route : "lock"} of ${name} was already gone: ${say.remover(trail ? trail.events : [], query.id)}.`;
  };
  return <Ask {...props} make={make} send={remove} undone="Nothing was changed." />;
}

/** Removes exactly the lock that was seen. */
export function BreakLock({ lock, ...shared }: OfLock) {
  const { id, version } = lock;
  const { name } = shared;
  const of = { route: "locks", query: { id, version }, done: `The lock of ${name} was removed. ${LOOK}` };
  return (
    <Remove {...shared} {...of} title={`Break the lock of ${name}`} verb="Break the lock" loses>
      <p>
        It was acquired <Age at={lock.since} /> by <By of={lock} />
        {lock.operation && ` for ${say.inSentence(lock.operation)}`}. Once it is removed, a client that still works
        under it cannot write any more. A later lock is not removed.
      </p>
      <Identities of={{ "Locked by": lock }} lock={id} />
      <Why />
    </Remove>
  );
}

/** Brings a deleted state back, by undoing exactly the deletion that was seen. A retry knows its own first try. */
export function Undelete({ marker, ...shared }: Shared & { marker: string }) {
  const { name } = shared;
  const make = ({ why }: Entered) => (why ? { marker, reason: why } : { marker });
  const undelete = async (wanted: Schemas["Undelete"]) => {
    const { serial } = await send<Schemas["Undeleted"]>("POST", `undelete/${name}`, wanted);
    return `${name} is back, with serial ${serial}. Run terraform plan to see what the infrastructure lacks.`;
  };
  const title = `Undelete ${name}`;
  return (
    <Ask {...shared} title={title} verb="Undelete" make={make} send={undelete} undone="Nothing was changed.">
      <p>
        This writes its newest version again. Its history is kept. <Told>{PLAN}</Told>
      </p>
      <Why />
    </Ask>
  );
}

/** A sentence about the pattern whose freeze it is; nothing if the freeze is of one state alone. */
export function PatternOf({ id, children }: { id: string; children: string }) {
  const patterns = useLoaded((signal) => list<Schemas["PatternFreeze"]>("freezes", signal), []);
  const pattern = patterns.data?.find((freeze) => freeze.id === id)?.pattern;
  return pattern ? (
    <p>
      The pattern <Name>{pattern}</Name> {children}
    </p>
  ) : null;
}

/** Lifts exactly the freeze that was seen. */
export function Unfreeze({ lock, ...shared }: OfLock) {
  const { id, reason } = lock.freeze ?? { id: "", reason: "" };
  const { name } = shared;
  const done = `${name} is not frozen any more. The reason was: ${reason}.`;
  return (
    <Remove {...shared} title={`Unfreeze ${name}`} verb="Unfreeze" route="freeze" query={{ id }} done={done}>
      <p>
        <By of={say.lockedBy(lock)} /> froze it <Age at={lock.since} end=":" /> <q>{reason}</q>. Without this freeze
        clients may change the state again. Other freezes and locks stay.
      </p>
      <PatternOf id={id}>stays frozen: no state that matches it can be created.</PatternOf>
      <Identities of={{ "Frozen by": say.lockedBy(lock) }} />
    </Remove>
  );
}

/** Freezes a state. */
export function Freeze(shared: Shared) {
  const { name } = shared;
  const make = ({ reason = "", end }: Entered) => ({ reason, until: say.until(end, now()), id: say.commandId() });
  const freeze = async (document: Schemas["Freeze"]) => {
    const { until } = (await send<Schemas["Frozen"]>("PUT", `freeze/${name}`, document)).freeze;
    return `${name} is frozen until ${until ? exactly(until) : "an operator unfreezes it"}.`;
  };
  return (
    <Ask {...shared} title={`Freeze ${name}`} verb="Freeze" make={make} send={freeze} undone="Nothing was changed.">
      <p>
        While it is frozen, no client can change the state through Holdfast. Terraform and OpenTofu print the reason at
        the next plan or apply. A force-unlock does not remove a freeze.
      </p>
      <Choice label="It ends" name="end" of={ENDS} value="never" />
      <Reason hint="which clients show" />
    </Ask>
  );
}

/** Freezes all states that match a pattern, also those that are created later. */
export function FreezePattern(shared: Omit<Shared, "name">) {
  const make = ({ pattern = "", reason = "", end }: Entered) => {
    return { pattern, reason, until: say.until(end, now()), id: say.commandId() };
  };
  const freeze = async (wanted: Schemas["FreezePattern"]) => {
    const frozen = new Set<string>();
    const others = new Set<string>();
    const put = (cursor?: string) =>
      send<Schemas["FrozenPattern"]>("PUT", "freezes", cursor ? { ...wanted, cursor } : wanted);
    let placed: Schemas["PatternFreeze"] | undefined;
    for await (const page of follow(put)) {
      placed = page.freeze;
      for (const name of page.frozen) frozen.add(name);
      for (const name of page.names) others.add(name);
    }
    // What had a lock then is frozen now if the lock was released meanwhile. It is frozen as the pattern is.
    const { reason, until, id } = placed ?? wanted;
    const left: string[] = [];
    for (const name of others) {
      const refused = await send("PUT", `freeze/${name}`, { reason, until, id }).then(() => undefined, failure);
      if (!refused || refused.code === "frozen") frozen.add(name);
      else if ([404, 409, 423].includes(refused.status)) left.push(name);
      else throw refused;
    }
    return say.frozenPattern(wanted, placed, frozen.size, left);
  };
  return (
    <Ask {...shared} name="" title="Freeze a pattern" verb="Freeze" make={make} send={freeze} undone="">
      <p>
        No client can change or create a matching state through Holdfast. Locked states are not frozen: the page names
        them afterwards.
      </p>
      <Field label="Pattern" name="pattern" placeholder="network/*" autofocus />
      <Choice label="It ends" name="end" of={ENDS} value="never" />
      <Reason hint="which clients show" />
    </Ask>
  );
}

/** Lifts exactly the freeze of a pattern that was seen, with all that it froze. */
export function UnfreezePattern({ freeze, ...shared }: Omit<Shared, "name"> & { freeze: Schemas["PatternFreeze"] }) {
  const { pattern, id, reason } = freeze;
  const by = { principal: freeze.by, owner: freeze.owner };
  const lift = async () => {
    let unfrozen = 0;
    const covered: string[] = [];
    const remove = (cursor?: string) =>
      send<Schemas["LiftedPattern"]>("DELETE", `freezes?${new URLSearchParams(cursor ? { id, cursor } : { id })}`);
    for await (const page of follow(remove)) {
      unfrozen += page.unfrozen.length;
      covered.push(...page.covered.map((state) => `${state.name} (by ${state.freeze.pattern})`));
    }
    const still = covered.length ? ` Another frozen pattern covers ${covered.join(", ")}.` : "";
    return `${pattern} is not frozen any more, with ${counted(unfrozen, "state")}.${still}`;
  };
  return (
    <Ask {...shared} name="" title={`Unfreeze ${pattern}`} verb="Unfreeze" make={() => id} send={lift} undone="">
      <p>
        This lifts the freeze, also of every state that it froze. <By of={by} /> froze it: <q>{reason}</q>. Other
        freezes and locks stay.
      </p>
      <Identities of={{ "Frozen by": by }} />
    </Ask>
  );
}

/** Writes the content of an earlier version again, over the one that was current when it was picked. */
export function Restore({ version, current, ...shared }: Shared & { version: Version; current: Version }) {
  const { name } = shared;
  const me = useMe();
  const [seen, setSeen] = useState({ ...current, modified: current.time as string | null });
  const [frozen, setFrozen] = useState<string>();
  const make = ({ reason = "" }: Entered) => {
    const wanted = { version: version.version, reason, id: say.commandId(), current: seen.version };
    return frozen ? { ...wanted, frozen } : wanted;
  };
  const restore = async (wanted: Schemas["Restore"]) => say.restored(await send("POST", `restore/${name}`, wanted));
  const look = (now?: State) => {
    if (now?.version) setSeen({ ...seen, ...now, version: now.version });
    const own = now?.lock?.principal === me?.principal ? now?.lock?.freeze?.id : undefined;
    setFrozen(own);
    return own && "You froze this state. Press Restore again to write under your freeze.";
  };
  const title = `Restore ${say.versionWords(version)} of ${name}`;
  return (
    <Ask
      {...shared}
      {...{ title, make, look }}
      verb="Restore"
      send={restore}
      undone="Nothing was changed."
      seen={seen.version}>
      <p>
        This writes the content of {say.versionWords(version)} by <By of={version} />, written{" "}
        <Age at={version.time} end="," /> again as a new version. Now {say.versionWords(seen)} by <By of={seen} /> is
        current
        {seen.modified && [", written ", <Age key="age" at={seen.modified} end="." />]}
      </p>
      <Identities of={{ "The earlier one": version, "The current one": seen }} />
      <p>
        No version is lost: another restore undoes this. <Told>{PLAN}</Told>
      </p>
      {version.status === "never_acknowledged" && (
        <p class="notice">This version was never acknowledged: its writer was refused.</p>
      )}
      <Reason hint="which the history shows" />
    </Ask>
  );
}
