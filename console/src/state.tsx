// What a state is now. Its history and its differences are in versions.tsx.

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { BreakLock, Freeze, Unfreeze } from "./actions";
import { get, type Role, type Schemas } from "./api";
import { bytes, counted, exactly } from "./format";
import { mayBreak, Table } from "./locks";
import { maintains, useMe } from "./me";
import { For, Head, HISTORIANS, Hidden, More, READERS, ShowValues, usePages } from "./parts";
import { grouped, points, summary } from "./shape";
import { Age, Empty, Loading, Problem, Size, useEvery, useLoaded, useTick } from "./ui";
import * as say from "./words";

type State = Schemas["StateDescription"];

const EVERY = 10; // seconds between two looks at whether the state changed

/** A state now, read anew when the list of states says that it changed. */
export function StatePage({ name }: { name: string }) {
  const state = useLoaded<State>((signal) => get(`states/${name}`, {}, signal), [name]);
  const { data, error, again } = state;
  const looking = useRef(false);
  useTick();
  useEvery(EVERY, async () => {
    if (!data || looking.current) return;
    looking.current = true;
    try {
      // The list reads no content: to look often costs little.
      const { states, next } = await get<Schemas["StatePage"]>("states", { prefix: name });
      const item = states.find((one) => one.name === name);
      const isSame = item?.modified === data.modified && item?.lock?.version === data.lock?.version;
      if (item ? !isSame : !next && data.version) again();
    } catch {
      // The page shows what it has until the next look.
    } finally {
      looking.current = false;
    }
  });
  return (
    <>
      <Head name={name} page="state" />
      {error && <Problem error={error} again={again} />}
      {!data && !error && <Loading what="the state" />}
      {data && error?.status !== 404 && <Now state={data} again={again} />}
    </>
  );
}

function Now({ state, again }: { state: State; again: () => void }) {
  const { name, version } = state;
  const part = (title: string, roles: Role[], children: ComponentChildren) => (
    <section>
      <h2>{title}</h2>
      <For roles={roles} name={name} what="This">
        {children}
      </For>
    </section>
  );
  return (
    <>
      <LockOf {...{ state, again }} />
      {version ? (
        <>
          <div class="now">
            <Facts state={state} />
            {part("Size of the last versions", HISTORIANS, <Sizes key={version} name={name} />)}
          </div>
          {state.encrypted ? (
            <Empty title="The client encrypted this state">
              <p>Its outputs and resources can be read only where the key is.</p>
            </Empty>
          ) : (
            <>
              {part("Outputs", ["outputs", ...READERS], <Outputs key={version} name={name} />)}
              {part("Resources", READERS, <Resources key={version} name={name} />)}
            </>
          )}
        </>
      ) : (
        <Empty title="There is no state of this name now">
          <p>{state.record ? "The name is declared: the first apply may write it." : "Only its lock exists."}</p>
        </Empty>
      )}
    </>
  );
}

function LockOf({ state, again }: { state: State; again: () => void }) {
  const me = useMe();
  const { name, lock } = state;
  // A dialog is about the lock that the person saw, whatever the page shows meanwhile.
  const [asked, setAsked] = useState<{ lock: State["lock"] }>();
  const shared = { name, onClose: () => setAsked(undefined), onDone: again };
  const mayChange = lock && !lock.freeze ? mayBreak(me, name, lock) : maintains(me, name);
  return (
    <section class={lock ? "notice" : "empty"} aria-label="Lock">
      {lock ? (
        <p>
          This state is {say.lockWords(lock)}, since <Age at={lock.since} />
          {lock.freeze?.until && `, until ${exactly(lock.freeze.until)}`}
          {!lock.freeze && <small> lock ID {[lock.id, lock.info].filter(Boolean).join(", ")}</small>}
        </p>
      ) : (
        <p>Nobody holds the lock.</p>
      )}
      {mayChange && (
        <button type="button" onClick={() => setAsked({ lock })}>
          {lock ? (lock.freeze ? "Unfreeze …" : "Break the lock …") : "Freeze …"}
        </button>
      )}
      {asked && !asked.lock && <Freeze {...shared} />}
      {asked?.lock?.freeze && <Unfreeze {...shared} lock={asked.lock} />}
      {asked?.lock && !asked.lock.freeze && <BreakLock {...shared} lock={asked.lock} />}
    </section>
  );
}

function Facts({ state }: { state: State }) {
  const { resources: all, modified } = state;
  const kinds = all && { resource: all.managed, "data source": all.data, output: all.outputs };
  const facts: Record<string, ComponentChildren> = {
    Serial: state.serial,
    Written: modified && <Age at={modified} />,
    By: say.writer(state),
    Operation: state.operation,
    Status: say.statusWords(state.status),
    Holds:
      kinds &&
      Object.entries(kinds)
        .map(([kind, many]) => counted(many, kind))
        .join(", "),
    Size: <Size bytes={state.size} />,
    Client: state.terraform_version,
    Lineage: state.lineage,
    Version: state.version,
  };
  return (
    <dl>
      {Object.entries(facts).map(([term, fact]) =>
        fact === null || fact === "" ? null : (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{fact}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

function Sizes({ name }: { name: string }) {
  const load = (signal: AbortSignal) => get<Schemas["VersionPage"]>(`versions/${name}`, {}, signal);
  const { data, error, again } = useLoaded(load, [name]);
  if (error) return <Problem error={error} again={again} />;
  if (!data) return <Loading what="the history" />;
  const sizes = data.versions.flatMap(({ size }) => size ?? []).reverse();
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
}

type Output = { name: string; type: string; sensitive: boolean; value: string | null };

/** Returns outputs without their values unless these are asked for, and never with one that is sensitive. */
async function outputsOf(name: string, values: boolean, signal: AbortSignal): Promise<Output[]> {
  // The route of Terraform's data source: outputs are not in the management API.
  const { outputs } = await get<Schemas["Outputs"]>(`../../outputs/${name}`, {}, signal);
  const found = (outputs ?? {}) as Record<string, { value?: unknown; type?: unknown; sensitive?: boolean }>;
  return Object.entries(found).map(([output, { value, type, sensitive = false }]) => ({
    name: output,
    type: String([type].flat()[0] ?? ""),
    sensitive,
    value: values && !sensitive ? JSON.stringify(value) : null,
  }));
}

function Outputs({ name }: { name: string }) {
  const [values, setValues] = useState(false);
  const outputs = useLoaded((signal) => outputsOf(name, values, signal), [name, values]);
  if (outputs.error) return <Problem error={outputs.error} again={outputs.again} />;
  if (outputs.data && !outputs.data.length) return <p class="faint">The state has no outputs.</p>;
  return (
    <>
      <ShowValues {...{ values, setValues }} />
      {outputs.data ? (
        <Table heads={["Output", "Type", "Value"]}>
          {outputs.data.map((output) => (
            <tr key={output.name}>
              <th scope="row">{output.name}</th>
              <td>{output.type}</td>
              <td>{output.value === null ? <Hidden {...output} /> : <code>{output.value}</code>}</td>
            </tr>
          ))}
        </Table>
      ) : (
        <Loading what="the outputs" />
      )}
    </>
  );
}

function Resources({ name }: { name: string }) {
  const pages = usePages<Schemas["ResourcePage"]>((cursor, signal) => get(`resources/${name}`, { cursor }, signal));
  const all = pages.pages.flatMap(({ resources }) => resources);
  return (
    <>
      {pages.pages.length > 0 && (
        <p role="status" class="faint">
          {counted(all.length, "object")}
          {pages.more && " so far"}
        </p>
      )}
      {grouped(all).map(({ module, count, types }) => (
        <details key={module} class="tree" open={!module}>
          <summary>
            {module || "Root module"} <small>{count}</small>
          </summary>
          {types.map(({ type, providers, resources }) => (
            <details key={type} class="tree" open={resources.length <= 20}>
              <summary>
                {type} <small>{resources.length}</small> <small>{providers.join(", ")}</small>
              </summary>
              <ul>
                {resources.map(({ address, tainted, deposed }) => (
                  <li key={address + deposed}>
                    <code>{address}</code>{" "}
                    {tainted && <span class="badge locked">tainted: the next apply replaces it</span>}
                    {deposed && <span class="badge locked">deposed: the next apply destroys it</span>}
                  </li>
                ))}
              </ul>
            </details>
          ))}
        </details>
      ))}
      <More pages={pages} what="resources" />
    </>
  );
}
