// What a state is now. Its history and its differences are in versions.tsx.

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { BreakLock, Freeze, Unfreeze } from "./actions";
import { get, type Schemas } from "./api";
import { bytes, counted, exactly } from "./format";
import { useLoaded, usePages } from "./load";
import { type Action, may, mayBreak, useMe } from "./me";
import { Head, Hidden, ShowValues } from "./parts";
import { grouped, points, summary } from "./shape";
import { Age, Button, By, Empty, Facts, For, Shown, Size, Status, Table } from "./ui";
import * as say from "./words";

type State = Schemas["StateDescription"];

const EVERY = 10; // seconds between two looks at whether the state changed

/** A state now, read anew when the list of states says that it changed. */
export function StatePage({ name }: { name: string }) {
  const seen = useRef<State>(undefined);
  const read = async (signal: AbortSignal) => {
    if (!seen.current || (await isChanged(seen.current, signal)))
      seen.current = await get<State>(`states/${name}`, {}, signal);
    return seen.current;
  };
  const state = useLoaded(read, [], EVERY);
  return (
    <>
      <Head name={name} page="state" />
      <Shown of={state} what="the state" show={(data) => <Now state={data} again={state.again} />} />
    </>
  );
}

/** Looks whether a state changed. The list reads no content: to look often costs little. */
async function isChanged({ name, version, modified, lock }: State, signal: AbortSignal): Promise<boolean> {
  const { states, next } = await get<Schemas["StatePage"]>("states", { prefix: name }, signal);
  const item = states.find((one) => one.name === name);
  if (!item) return !next && (version ?? lock) !== null;
  return item.modified !== modified || item.lock?.version !== lock?.version;
}

function Now({ state, again }: { state: State; again: () => void }) {
  const { name, version, encrypted } = state;
  const part = (title: string, action: Action, children: ComponentChildren) => (
    <section>
      <h2>{title}</h2>
      <For action={action} name={name} what="This">
        {children}
      </For>
    </section>
  );
  const missing = state.record ? "The name is declared: the first apply may write it." : "Only its lock exists.";
  return (
    <>
      <LockOf {...{ state, again }} />
      {!version && <Empty title="There is no state of this name now">{missing}</Empty>}
      {version && (
        <div class="now">
          <Facts facts={factsOf(state)} />
          {part("Size of the last versions", "read_history", <Sizes key={version} name={name} />)}
        </div>
      )}
      {encrypted && (
        <Empty title="The client encrypted this state">
          Its outputs and resources can be read only where the key is.
        </Empty>
      )}
      {version && !encrypted && part("Outputs", "read_outputs", <Outputs key={version} name={name} />)}
      {version && !encrypted && part("Resources", "read", <Resources key={version} name={name} />)}
    </>
  );
}

function LockOf({ state: { name, lock }, again }: { state: State; again: () => void }) {
  const me = useMe();
  // A dialog is about the lock that the person saw, whatever the page shows meanwhile.
  const [asked, setAsked] = useState<{ lock: State["lock"] }>();
  const shared = { name, onClose: () => setAsked(undefined), onDone: again };
  const mayChange = lock && !lock.freeze ? mayBreak(me, name, lock) : may(me, "freeze", name);
  const Remove = asked?.lock?.freeze ? Unfreeze : BreakLock;
  return (
    <section class={lock ? "notice" : "empty"} aria-label="Lock">
      {lock ? (
        <p>
          {`This state is ${say.lockWords(lock)}, since `}
          <Age at={lock.since} />
          {lock.freeze?.until && `, until ${exactly(lock.freeze.until)}`}
          {!lock.freeze && <small>{` lock ID ${[lock.id, lock.info].filter(Boolean).join(", ")}`}</small>}
        </p>
      ) : (
        <p>Nobody holds the lock.</p>
      )}
      {mayChange && (
        <Button onClick={() => setAsked({ lock })}>
          {lock ? (lock.freeze ? "Unfreeze …" : "Break the lock …") : "Freeze …"}
        </Button>
      )}
      {asked && (asked.lock ? <Remove {...shared} lock={asked.lock} /> : <Freeze {...shared} />)}
    </section>
  );
}

function factsOf(state: State): Record<string, ComponentChildren> {
  const { resources, modified } = state;
  const numbers = resources && {
    resource: resources.managed,
    "data source": resources.data,
    output: resources.outputs,
  };
  const kinds = Object.entries(numbers ?? {}).filter(([, many]) => many > 0);
  return {
    Serial: state.serial,
    Written: modified && <Age at={modified} />,
    By: <By of={state} />,
    Operation: say.operationWords(state.operation),
    Status: say.statusWords(state.status),
    Content: numbers && (kinds.map(([kind, many]) => counted(many, kind)).join(", ") || "nothing"),
    Size: <Size bytes={state.size} />,
    Client: state.terraform_version,
    Lineage: state.lineage,
    Version: state.version,
  };
}

function Sizes({ name }: { name: string }) {
  const history = useLoaded((signal) => get<Schemas["VersionPage"]>(`versions/${name}`, {}, signal), []);
  const plot = ({ versions }: Schemas["VersionPage"]) => {
    const sizes = versions.flatMap(({ size }) => size ?? []).reverse();
    const words = summary(sizes, bytes);
    const dots = points(sizes, 320, 64);
    return (
      <>
        <svg class="plot" viewBox="0 0 320 64" role="img" aria-label={words}>
          <polyline points={dots.join(" ")} />
          {dots.map(([x, y]) => (
            <circle key={x} cx={x} cy={y} r="2.5" />
          ))}
        </svg>
        <small>{words}</small>
      </>
    );
  };
  return <Shown of={history} what="versions" show={plot} />;
}

type Output = { name: string; type: string; sensitive: boolean; value?: string | undefined };

/** Reads outputs by Terraform's route, without values unless these are asked for, and never with a sensitive one. */
async function outputsOf(name: string, values: boolean, signal: AbortSignal): Promise<Output[]> {
  const mask = values ? "sensitive" : "all";
  const { outputs } = await get<Schemas["Outputs"]>(`../../outputs/${name}`, { mask }, signal);
  const found = (outputs ?? {}) as Record<string, { value?: unknown; type?: unknown; sensitive?: boolean }>;
  return Object.entries(found).map(([output, { value, type, sensitive = false }]) => {
    const shown = values && !sensitive ? JSON.stringify(value) : undefined;
    return { name: output, type: String([type].flat()[0] ?? ""), sensitive, value: shown };
  });
}

function Outputs({ name }: { name: string }) {
  const [values, setValues] = useState(false);
  const outputs = useLoaded((signal) => outputsOf(name, values, signal), [values]);
  const columns = {
    Output: (output: Output) => output.name,
    Type: (output: Output) => output.type,
    Value: ({ value, sensitive }: Output) =>
      values && value !== undefined ? <code>{value}</code> : <Hidden sensitive={sensitive} />,
  };
  const table = (all: Output[]) =>
    all.length ? (
      <>
        <ShowValues checked={values} onChange={setValues} />
        <Table rows={all} name={(output) => output.name} columns={columns} />
      </>
    ) : (
      <p class="faint">The state has no outputs.</p>
    );
  return <Shown of={outputs} what="outputs" show={table} />;
}

function Resources({ name }: { name: string }) {
  const pages = usePages<Schemas["ResourcePage"]>((cursor, signal) => get(`resources/${name}`, { cursor }, signal));
  const tree = (read: Schemas["ResourcePage"][]) => {
    const all = read.flatMap(({ resources }) => resources);
    return (
      <>
        <Status>{counted(all.length, "object") + (pages.hasMore ? " so far" : "")}</Status>
        {grouped(all).map(({ module, count, types }) => (
          <Branch key={module} name={module || "Root module"} notes={[count]} open={!module}>
            {types.map(({ type, providers, resources }) => (
              <Branch key={type} name={type} notes={[resources.length, ...providers]} open={resources.length <= 20}>
                <ul>
                  {resources.map(({ address, tainted, deposed }) => (
                    <li key={address + deposed}>
                      <code>{address}</code>{" "}
                      {tainted && <span class="badge locked">tainted: the next apply replaces it</span>}
                      {deposed && <span class="badge locked">deposed: the next apply destroys it</span>}
                    </li>
                  ))}
                </ul>
              </Branch>
            ))}
          </Branch>
        ))}
      </>
    );
  };
  return <Shown of={pages} what="resources" show={tree} />;
}

type Parts = { name: string; notes: (string | number)[]; open: boolean; children: ComponentChildren };

const Branch = ({ name, notes, open, children }: Parts) => (
  <details class="tree" open={open}>
    <summary>
      {name} <small>{notes.join(" ")}</small>
    </summary>
    {children}
  </details>
);
