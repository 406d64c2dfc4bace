// The changes: each says what will happen, sends what the command sends, and tells what came of it.

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { type ApiError, asked, get, type Schemas, send } from "./api";
import { now } from "./clock";
import { when } from "./format";
import { audits, useMe } from "./me";
import { failure, words } from "./problems";
import { Age, Dialog } from "./ui";
import * as say from "./words";

type State = Schemas["StateDescription"];
type Version = Schemas["Version"];
type Shared = { name: string; onClose: () => void; onDone: () => void };
type OfLock = Shared & { lock: Schemas["Lock"] };

const LOOK = "Run terraform plan to see what its holder has left.";
const ENDS = [
  ["never", "when somebody unfreezes it"],
  ["1", "in 1 hour"],
  ["8", "in 8 hours"],
  ["24", "in 1 day"],
  ["168", "in 7 days"],
] as const;

/** A dialog that asks, sends one document, the same in each retry, and tells the result. */
function Ask<D>(
  props: Shared & {
    title: string;
    verb: string;
    /** Why it cannot be sent yet; empty if it can. */
    missing?: () => string;
    make: () => D;
    send: (document: D) => Promise<string>;
    refused: (error: ApiError) => Promise<string>;
    children: ComponentChildren;
  },
) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const [done, setDone] = useState("");
  const sent = useRef<D | null>(null); // until it is known what came of it
  const submit = async (event: Event) => {
    event.preventDefault();
    const missing = props.missing?.() ?? "";
    setProblem(missing);
    if (missing || busy) return;
    setBusy(true);
    sent.current ??= props.make();
    try {
      setDone(await props.send(sent.current));
      props.onDone();
    } catch (error) {
      const failed = failure(error);
      const { title, advice } = words(failed);
      const isKnown = failed.status >= 400 && failed.status < 500 && failed.status !== 429;
      if (isKnown) sent.current = null;
      setProblem(
        isKnown ? await props.refused(failed) : `${title}. ${advice} It may have taken effect; trying again is safe.`,
      );
      if (isKnown) props.onDone();
    }
    setBusy(false);
  };
  const close = (
    <button type="button" onClick={props.onClose} ref={(button) => (done ? button?.focus() : undefined)}>
      {done ? "Close" : "Cancel"}
    </button>
  );
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <p role="status">{done}</p>
      {done ? (
        close
      ) : (
        <form class="form" onSubmit={submit} noValidate>
          <fieldset disabled={busy || sent.current !== null}>{props.children}</fieldset>
          <p class="wrong" role="alert">
            {problem}
          </p>
          <p class="actions">
            <button type="submit" class="main danger" disabled={busy}>
              {busy ? "Sending …" : sent.current ? "Try again" : props.verb}
            </button>
            {close}
          </p>
        </form>
      )}
    </Dialog>
  );
}

function Reason({ value, set, hint }: { value: string; set: (reason: string) => void; hint: string }) {
  return (
    <>
      <label for="reason">Reason</label>
      <input
        id="reason"
        value={value}
        onInput={(event) => set(event.currentTarget.value)}
        maxLength={200}
        autocomplete="off"
        autofocus
        aria-describedby="reason-hint"
      />
      <small id="reason-hint">{hint}</small>
    </>
  );
}

/** Returns the words for a refusal, and the state as it is now; `seen` is the version that was current before. */
async function refusal(name: string, error: ApiError, undone: string, seen?: string) {
  const now = await get<State>(`states/${name}`).catch(() => undefined);
  return { now, words: say.refusal(error.code, error.message, undone, now, seen) };
}

type Removal = Omit<OfLock, "lock"> & { title: string; verb: string; route: string; children: ComponentChildren };

/** Removes exactly the lock or freeze that was seen, and says who was faster where the audit trail says so. */
function Remove({ query, done, ...props }: Removal & { query: Record<string, string>; done: string }) {
  const { name, route } = props;
  const mayLook = audits(useMe());
  const remove = async () => {
    const { removed } = await send<Schemas["Removed"]>("DELETE", `${route}/${name}${asked(query)}`);
    if (removed) return done;
    const look = () => get<{ events: Record<string, string>[] }>("activity", { state: name });
    const events = mayLook ? (await look().catch(() => undefined))?.events : [];
    const first = events?.find(
      ({ event = "", lock_id, freeze }) => /released|unlocked|unfrozen/.test(event) && (freeze ?? lock_id) === query.id,
    );
    const by = first ? ` It was ${first.owner || first.principal}.` : "";
    return `It was gone already: its holder released it, or somebody else removed it.${by} Nothing was removed.`;
  };
  const refused = async (error: ApiError) => (await refusal(name, error, "Nothing was removed.")).words;
  return <Ask {...props} make={() => query} send={remove} refused={refused} />;
}

/** Removes exactly the lock that was seen. */
export function BreakLock({ lock, ...shared }: OfLock) {
  const { id, version } = lock;
  const { name } = shared;
  return (
    <Remove
      {...shared}
      title={`Break the lock of ${name}`}
      verb="Break the lock"
      route="locks"
      query={{ id, version }}
      done={`The lock of ${name} is removed. ${LOOK}`}>
      <p>
        This removes the lock <code>{id}</code> of <b>{name}</b>, which is {say.lockWords(lock)}, since{" "}
        <Age at={lock.since} />. A client that still works under it cannot write any more. Another lock stays.
      </p>
      <p>{LOOK}</p>
    </Remove>
  );
}

/** Lifts exactly the freeze that was seen. */
export function Unfreeze({ lock, ...shared }: OfLock) {
  const { id, reason } = lock.freeze ?? { id: "", reason: "" };
  const { name } = shared;
  return (
    <Remove
      {...shared}
      title={`Unfreeze ${name}`}
      verb="Unfreeze"
      route="freeze"
      query={{ id }}
      done={`${name} is not frozen any more; it was: ${reason}.`}>
      <p>
        This lifts the freeze of <b>{name}</b>, by {say.frozenBy(lock)}, since <Age at={lock.since} />: <q>{reason}</q>{" "}
        Then clients may change the state again. Other freezes and locks stay.
      </p>
    </Remove>
  );
}

/** Freezes a state. */
export function Freeze(shared: Shared) {
  const { name } = shared;
  const [reason, setReason] = useState("");
  const [choice, setChoice] = useState("never");
  return (
    <Ask<Schemas["Freeze"]>
      {...shared}
      title={`Freeze ${name}`}
      verb="Freeze"
      missing={() => say.reasonProblem(reason)}
      make={() => ({ reason, until: say.until(choice, now()), id: say.commandId() })}
      send={async (document) => {
        const { freeze } = await send<Schemas["Frozen"]>("PUT", `freeze/${name}`, document);
        return `${name} is frozen until ${freeze.until ? when(freeze.until) : "somebody unfreezes it"}.`;
      }}
      refused={async (error) => (await refusal(name, error, "It was not frozen.")).words}>
      <p>
        Nobody can change <b>{name}</b> then: Terraform and OpenTofu print the reason at the next plan or apply, and no
        force-unlock removes a freeze. A maintainer can unfreeze it at any time.
      </p>
      <Reason value={reason} set={setReason} hint="One line, for everybody who meets the freeze." />
      <label for="until">It ends</label>
      <select id="until" value={choice} onChange={(event) => setChoice(event.currentTarget.value)}>
        {ENDS.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </Ask>
  );
}

/** Writes the content of an earlier version again, over the one that was current when it was picked. */
export function Restore(props: Shared & { version: Version; current: Version }) {
  const { version, current, ...shared } = props;
  const { name } = shared;
  const me = useMe();
  const [seen, setSeen] = useState({ ...current, modified: current.time as string | null });
  const [reason, setReason] = useState("");
  const [frozen, setFrozen] = useState<string>();
  const refused = async (error: ApiError) => {
    const { now, words } = await refusal(name, error, "Nothing was restored.", seen.version);
    const { version: base, lock } = now ?? {};
    if (now && base) setSeen({ ...seen, ...now, version: base, lineage: now.lineage });
    const own = lock?.principal === me?.principal ? lock?.freeze?.id : undefined;
    setFrozen(own);
    return own ? "You froze this state. If you go on, the version is written under your freeze." : words;
  };
  return (
    <Ask<Schemas["Restore"]>
      {...shared}
      title={`Restore ${say.versionWords(version)} of ${name}`}
      verb="Restore"
      missing={() => say.reasonProblem(reason)}
      make={() => ({
        version: version.version,
        reason,
        id: say.commandId(),
        current: seen.version,
        ...(frozen ? { frozen } : {}),
      })}
      send={async (wanted) => say.restored(await send("POST", `restore/${name}`, wanted))}
      refused={refused}>
      <p>
        This writes the content of {say.versionWords(version)}, written <Age at={version.time} /> by{" "}
        {say.writer(version)}, again as a new version of <b>{name}</b>. Now {say.versionWords(seen)} is current, written{" "}
        {seen.modified && <Age at={seen.modified} />} by {say.writer(seen)}.
      </p>
      <p>
        No version is lost: another restore undoes this. Infrastructure does not go back with the state: run{" "}
        <code>terraform plan</code> afterwards.
      </p>
      {version.status === "never_acknowledged" && (
        <p class="notice">This version was never acknowledged: its writer was refused.</p>
      )}
      <Reason value={reason} set={setReason} hint="One line, which the history shows." />
    </Ask>
  );
}
