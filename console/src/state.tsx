// What a state is now, or that it is deleted. Its history and its differences are in versions.tsx.

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { BreakLock, Freeze, PatternOf, Undelete, Unfreeze } from "./actions";
import { get, raw, type Schemas } from "./api";
import { apiAddress, backendBlock, outputsBlock } from "./backend";
import { now } from "./clock";
import { Deleted } from "./deleted";
import { ages, bytes, counted, exactly } from "./format";
import { useLoaded, usePages } from "./load";
import { type Action, may, mayBreak, useMe } from "./me";
import { Head, Hidden, ResourceLink, ShowValues } from "./parts";
import { failure, words } from "./problems";
import { href } from "./route";
import { bars, grouped, HEIGHT, summary, WIDTH } from "./shape";
import { Age, Block, Button, By, Copy, Empty, Facts, For, Name, Shown, Size, Status, Table } from "./ui";
import * as say from "./words";

type State = Schemas["StateDescription"];
type Item = Schemas["StateItem"];
type Lock = Schemas["Lock"];

const EVERY = 10; // seconds between two looks at whether the state changed
const WHOLE = 6_291_456; // bytes that a response of the API can have: a larger state would be a redirect to S3

/** A state now, read anew when the list of states says that it changed; or when it was deleted. */
export function StatePage({ name }: { name: string }) {
  const seen = useRef<State | Item>(undefined);
  const read = async (signal: AbortSignal) => {
    if (!seen.current || (await isChanged(seen.current, signal))) seen.current = await stateOrDeleted(name, signal);
    return seen.current;
  };
  const state = useLoaded<State | Item>(read, [], EVERY);
  // A dialog is about what the person saw, and stays open whatever the page shows meanwhile.
  const [asked, ask] = useState<Asked>();
  const shared = { name, onClose: () => ask(undefined), onDone: state.again };
  const show = (data: State | Item) =>
    "deleted" in data ? <Gone item={data} ask={ask} /> : <Now state={data} ask={ask} />;
  return (
    <>
      <Head name={name} page="state" />
      <Shown of={state} what="the state" show={show} />
      {asked === "freeze" && <Freeze {...shared} />}
      {typeof asked === "object" && "marker" in asked && <Undelete {...shared} {...asked} />}
      {typeof asked === "object" && "freeze" in asked && <Removal {...shared} lock={asked} />}
    </>
  );
}

/** What a dialog is about: the lock or freeze to remove, the deletion to undo, or a freeze to come. */
type Asked = Lock | { marker: string } | "freeze";
type Asks = { ask: (asked: Asked) => void };

const Removal = (props: Parameters<typeof BreakLock>[0]) =>
  props.lock.freeze ? <Unfreeze {...props} /> : <BreakLock {...props} />;

/** Reads a state, or its item in the list of deleted ones; raises `ApiError` if it is in neither. */
async function stateOrDeleted(name: string, signal: AbortSignal): Promise<State | Item> {
  const found = await get<State>(`states/${name}`, {}, signal).catch(failure);
  if (!(found instanceof Error) && found.version) return found;
  if (found instanceof Error && found.status !== 404) throw found;
  const deleted = await itemOf(name, signal, "true");
  if (deleted) return deleted;
  if (found instanceof Error) throw found;
  return found;
}

async function itemOf(name: string, signal: AbortSignal, deleted?: string): Promise<Item | undefined> {
  // The name itself comes before all that begin with it, but for those that continue with a sign before the dot.
  const { states } = await get<Schemas["StatePage"]>("states", { prefix: name, deleted }, signal);
  return states.find((one) => one.name === name);
}

/** Looks whether a state changed. The list reads no content: to look often costs little. */
async function isChanged(seen: State | Item, signal: AbortSignal): Promise<boolean> {
  if ("deleted" in seen) return Boolean((await itemOf(seen.name, signal))?.modified);
  const { name, version, modified, lock } = seen;
  const { states, next } = await get<Schemas["StatePage"]>("states", { prefix: name }, signal);
  const item = states.find((one) => one.name === name);
  if (!item) return !next && (version ?? lock) !== null;
  return item.modified !== modified || item.lock?.version !== lock?.version;
}

/** A deleted state. Its history tells which deletion an undelete undoes. */
function Gone({ item: { name, modified, lock }, ask }: Asks & { item: Item }) {
  const me = useMe();
  const history = useLoaded(
    async (signal) =>
      may(me, "read_history", name) ? get<Schemas["VersionPage"]>(`versions/${name}`, {}, signal) : undefined,
    [me],
  );
  const marker = history.data?.versions.find(({ delete_marker }) => delete_marker)?.version;
  return (
    <>
      {lock && <LockOf {...{ name, lock, ask }} />}
      <Deleted {...{ name, marker }} at={modified} undelete={(marker) => ask({ marker })}>
        Its earlier versions are in <a href={href({ page: "history", name })}>its history</a>.
      </Deleted>
    </>
  );
}

function Now({ state, ask }: Asks & { state: State }) {
  const { name, version, encrypted, lock, resources: total } = state;
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
      {lock && <LockOf {...{ name, lock, ask }} />}
      {!version && <Empty title="There is no state with this name now">{missing}</Empty>}
      <div class="actions">
        {version && <Summary state={state} />}
        <Bar state={state} ask={ask} />
      </div>
      {version && (
        <div class="now">
          <Facts facts={factsOf(state)} />
          {part("Last versions", "read_history", <Sizes key={version} name={name} />)}
        </div>
      )}
      {encrypted && (
        <Empty title="The client encrypted this state">
          Only clients with the key can read its outputs and resources.
        </Empty>
      )}
      {version && !encrypted && (
        <div class="now">
          {part("Outputs", "read_outputs", <Outputs key={version} name={name} />)}
          {part("Resources", "read", <Resources key={version} {...{ name, total }} />)}
        </div>
      )}
    </>
  );
}

/** What people look for first, in one line. */
function Summary({ state }: { state: State }) {
  const { resources, modified, serial, size, terraform_version } = state;
  const numbers = { resource: resources?.managed, "data source": resources?.data, output: resources?.outputs };
  const counts = Object.entries(numbers).map(([kind, many]) => many && counted(many, kind));
  const facts = [
    serial !== null && `serial ${serial}`,
    ...counts,
    <Size key="size" bytes={size} />,
    say.clientWords(terraform_version),
    modified && <Age key="age" at={modified} />,
  ].filter(Boolean);
  return (
    <p class="summary">
      {facts.map((fact, at) => [at > 0 && " · ", fact])} by <By of={state} />
    </p>
  );
}

/** What can be done with a state, but for its lock. */
function Bar({ state, ask }: Asks & { state: State }) {
  const { name, version, size, lock } = state;
  const me = useMe();
  return (
    <div class="actions">
      <Copy text={backendBlock(apiAddress(), name)} what="backend block">
        Copy backend block
      </Copy>
      {version &&
        may(me, "read", name) &&
        ((size ?? 0) <= WHOLE ? (
          <Download {...{ name, version }} />
        ) : (
          <Copy text={`holdfast state get ${name}`} what="download command">
            Copy download command
          </Copy>
        ))}
      {!lock && may(me, "freeze", name) && <Button onClick={() => ask("freeze")}>Freeze …</Button>}
    </div>
  );
}

/** Saves the state, all of it, as a file. */
function Download({ name, version }: { name: string; version: string }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const save = async () => {
    setBusy(true);
    setProblem("");
    try {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([await raw(`content/${name}`, { version })]));
      link.download = `${name.replaceAll("/", "_")}.tfstate`;
      link.click();
      URL.revokeObjectURL(link.href);
    } catch (thrown) {
      const { title, advice } = words(failure(thrown));
      setProblem(`${title}. ${advice} holdfast state get ${name} fetches it in a terminal.`);
    }
    setBusy(false);
  };
  return (
    <>
      <Button title="With its sensitive values" disabled={busy} onClick={save}>
        {busy ? "Downloading …" : "Download"}
      </Button>
      {problem && (
        <p class="wrong" role="alert">
          {problem}
        </p>
      )}
    </>
  );
}

/** A lock or a freeze, and what removes it. */
function LockOf({ name, lock, ask }: Asks & { name: string; lock: Lock }) {
  const me = useMe();
  const { freeze, since, id, info, operation } = lock;
  const mayChange = freeze ? may(me, "freeze", name) : mayBreak(me, name, lock);
  const verb = freeze ? (freeze.ended ? "No longer frozen" : "Frozen") : "Locked";
  return (
    <section class={freeze ? "notice cold" : "notice"} aria-label="Lock">
      <p>
        <strong>{verb}</strong> <Age at={since} /> by <By of={say.lockedBy(lock)} />
        {!freeze && operation && ` for ${say.inSentence(operation)}`}
        {freeze?.until && `, until ${exactly(freeze.until)}`}
        {freeze && `: ${freeze.reason}`}
      </p>
      {freeze ? (
        <PatternOf id={freeze.id}>froze this state.</PatternOf>
      ) : (
        <p>
          <small>
            lock ID <code>{id}</code> <Copy text={id} what="the lock ID" /> {info}
          </small>
        </p>
      )}
      {mayChange ? (
        <Button onClick={() => ask(lock)}>{freeze ? "Unfreeze …" : "Break the lock …"}</Button>
      ) : (
        <For action={freeze ? "freeze" : "force_unlock"} name={name} what="Removing it" />
      )}
    </section>
  );
}

function factsOf(state: State): Record<string, ComponentChildren> {
  const copied = (text: string | null, what: string) =>
    text && (
      <>
        <code>{text}</code> <Copy text={text} what={what} />
      </>
    );
  const { principal, who } = state;
  return {
    Operation: say.operationWords(state.operation),
    Status: say.statusWords(state.status),
    Principal: copied(principal, "the principal"),
    "Client says": who && who !== principal && say.claimed(who),
    IDs: (
      <details>
        <summary>Lineage and version</summary>
        <Facts
          facts={{ Lineage: copied(state.lineage, "the lineage"), Version: copied(state.version, "the version ID") }}
        />
      </details>
    ),
  };
}

/** How configurations reach a state, and its outputs. */
export function ConfigurationPage({ name }: { name: string }) {
  const blocks = {
    "Keep this state here": backendBlock(apiAddress(), name),
    "Read its outputs in another configuration": outputsBlock(apiAddress(), name),
  };
  return (
    <>
      <Head name={name} page="configuration" />
      {Object.entries(blocks).map(([title, block]) => (
        <section key={title} class="block">
          <h2>{title}</h2>
          <Copy text={block} what={`block: ${title}`}>
            Copy
          </Copy>
          <Block>{block}</Block>
        </section>
      ))}
      <p class="faint">
        <code>{`holdfast backend-config ${name}`}</code> prints this block, and has other forms.
      </p>
    </>
  );
}

/** The sizes of the last versions as bars along their times, from three versions on. Each leads to what it changed. */
function Sizes({ name }: { name: string }) {
  const mayRead = may(useMe(), "read", name);
  const history = useLoaded((signal) => get<Schemas["VersionPage"]>(`versions/${name}`, {}, signal), []);
  const plot = ({ versions: all }: Schemas["VersionPage"]) => {
    const versions = all.filter(({ delete_marker }) => !delete_marker).reverse();
    const places = bars(versions);
    const notes = versions.map((version) => say.note(version, all));
    const bar = (version: Schemas["Version"], at: number) => {
      const { version: to, size, time, status, restored_from } = version;
      const from = mayRead && versions[at - 1]?.version;
      const [x, height] = places[at] ?? [0, 0];
      const facts = [say.versionWords(version), bytes(size ?? 0), `${ages(time, now())} ago`, notes[at]];
      return (
        <a key={to} href={href(from ? { page: "diff", name, from, to } : { page: "history", name })}>
          <title>{`${facts.filter(Boolean).join(", ")}, by ${say.person(version)}`}</title>
          <path class={`${status} ${restored_from && "restored"}`} d={`M${x + 1} ${HEIGHT}v-${height}h6v${height}z`} />
          <path d={`M${x} 0h8v${HEIGHT}h-8z`} />
        </a>
      );
    };
    const [oldest, newest] = [versions[0], versions.at(-1)];
    return (
      <>
        <small>
          {summary(versions)}
          {notes.some(Boolean) && " · hollow: restored · dashed: refused"}
        </small>
        {oldest && newest && versions.length > 2 && (
          <>
            <svg class="plot" viewBox={`0 0 ${WIDTH} ${HEIGHT}`}>
              <title>Sizes</title>
              {versions.map(bar)}
            </svg>
            <p class="step">
              <Age at={oldest.time} />
              <span>
                current: <Age at={newest.time} />
              </span>
            </p>
          </>
        )}
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
    Output: (output: Output) => <Name>{output.name}</Name>,
    Type: (output: Output) => output.type,
    Value: ({ value, sensitive }: Output) =>
      values && value !== undefined ? <code>{value}</code> : <Hidden sensitive={sensitive} />,
  };
  const table = (all: Output[]) =>
    all.length ? (
      <>
        <ShowValues checked={values} onChange={setValues} />
        <div class="of-outputs">
          <Table rows={all} name={(output) => output.name} columns={columns} />
        </div>
      </>
    ) : (
      <p class="faint">The state has no outputs.</p>
    );
  return <Shown of={outputs} what="outputs" show={table} />;
}

function Resources({ name, total }: { name: string; total: State["resources"] }) {
  const pages = usePages<Schemas["ResourcePage"]>((cursor, signal) => get(`resources/${name}`, { cursor }, signal));
  const tree = (read: Schemas["ResourcePage"][]) => {
    const all = read.flatMap(({ resources }) => resources);
    const many = total && total.managed + total.data;
    const number = (count: number) => count.toLocaleString("en") + (pages.hasMore ? " so far" : "");
    const more = `${all.length.toLocaleString("en")} ${many ? `of ${many.toLocaleString("en")}` : "so far"}`;
    return (
      <>
        <Status>{pages.hasMore ? more : !all.length && "No resources"}</Status>
        {grouped(all).map(({ module, count, types }) => (
          <Branch key={module} name={module || "Root module"} notes={[number(count)]} open={!module}>
            {types.map(({ type, providers, resources }) => (
              <Branch
                key={type}
                name={type}
                notes={[number(resources.length), ...providers.map((one) => one.replace("registry.terraform.io/", ""))]}
                open={resources.length <= 20}>
                <ul>
                  {resources.map(({ address, tainted, deposed }) => (
                    <li key={address + deposed}>
                      <ResourceLink {...{ name, address }} />{" "}
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

type Parts = { name: string; notes: string[]; open: boolean; children: ComponentChildren };

const Branch = ({ name, notes, open, children }: Parts) => (
  <details class="tree" open={open}>
    <summary>
      <Name>{name}</Name> <small>{notes.join(" ")}</small>
    </summary>
    {children}
  </details>
);
