// The history of a state, and what differs between two of its versions.

import { useState } from "preact/hooks";
import { Restore } from "./actions";
import { get, type Schemas } from "./api";
import { useLoaded, usePages } from "./load";
import { may, useMe } from "./me";
import { Head, Hidden, ShowValues } from "./parts";
import { href } from "./route";
import { Age, Button, By, Empty, entered, For, Shown, Size, Submit, Table } from "./ui";
import * as say from "./words";

type Version = Schemas["Version"];
type Asked = { version: Version; current: Version };

/** The versions of a state. Two are picked to see what differs, and one is restored. */
export function HistoryPage({ name }: { name: string }) {
  const [turn, setTurn] = useState(0);
  const [asked, setAsked] = useState<Asked>();
  const onDone = () => setTurn((before) => before + 1);
  return (
    <>
      <Head name={name} page="history" />
      <For action="read_history" name={name} what="The history">
        <Versions key={turn} name={name} restore={setAsked} />
      </For>
      {asked && <Restore {...{ name, onDone }} {...asked} onClose={() => setAsked(undefined)} />}
    </>
  );
}

function Versions({ name, restore }: { name: string; restore: (asked: Asked) => void }) {
  const me = useMe();
  const pages = usePages<Schemas["VersionPage"]>((cursor, signal) => get(`versions/${name}`, { cursor }, signal));
  const versions = pages.data?.flatMap((page) => page.versions) ?? [];
  const contents = versions.filter((version) => !version.delete_marker);
  const current = versions[0];
  const mayRestore = may(me, "restore", name) && current && !current.delete_marker;
  const compares = may(me, "read", name) && contents.length > 1;
  const compare = (event: Event) => {
    const { From: from = "", To: to = "" } = entered(event);
    location.hash = href({ page: "diff", name, from, to });
  };
  const sides = { From: contents[1], To: contents[0] }; // those that are picked at first
  const pick = (version: Version) =>
    Object.entries(sides).map(([side, first]) => (
      <label key={side}>
        <input
          type="radio"
          name={side}
          value={version.version}
          aria-label={`${side} ${say.versionWords(version)}`}
          defaultChecked={version === first}
        />
        {side}
      </label>
    ));
  const columns = {
    Version: (version: Version) => (
      <>
        {version.delete_marker ? "deleted" : say.versionWords(version)}{" "}
        {version.current && !version.delete_marker && <span class="badge frozen">current</span>}
        <small>{say.note(version, versions)}</small>
      </>
    ),
    Written: (version: Version) => (
      <>
        <Age at={version.time} />
        {version.size !== null && [", ", <Size key="size" bytes={version.size} />]}
        {!version.delete_marker && (
          <small>
            <By of={version} /> {version.operation && `· ${say.operationWords(version.operation)}`}
          </small>
        )}
      </>
    ),
    ...(compares && { Compare: (version: Version) => !version.delete_marker && pick(version) }),
    "": (version: Version) =>
      mayRestore &&
      !version.delete_marker &&
      current !== version && (
        <Button aria-label={`Restore ${say.versionWords(version)}`} onClick={() => restore({ version, current })}>
          Restore …
        </Button>
      ),
  };
  const table = () => (
    <form onSubmit={compare}>
      {compares && <Submit>Compare the two versions</Submit>}
      {current?.delete_marker && (
        <p class="notice">
          The state is deleted. <code>{`holdfast state undelete ${name}`}</code> brings it back.
        </p>
      )}
      <Table rows={versions} name={({ version }) => version} columns={columns} />
    </form>
  );
  return <Shown of={pages} what="versions" show={table} />;
}

/** What differs between two versions. */
export function DiffPage({ name, from, to }: { name: string; from: string; to: string }) {
  const [values, setValues] = useState(false);
  const differences = useLoaded<Schemas["Differences"]>(
    (signal) => get(`diff/${name}`, { from, to, values: values ? "true" : undefined }, signal),
    [values],
  );
  return (
    <>
      <Head name={name} page="diff" />
      <For action="read" name={name} what="What differs">
        <ShowValues checked={values} onChange={setValues} />
        <Shown of={differences} what="what differs" show={(found) => <Differences found={found} />} />
      </For>
    </>
  );
}

function Differences({ found }: { found: Schemas["Differences"] }) {
  const { resources, outputs } = found;
  const side = ({ serial, time, size, terraform_version: client }: Schemas["Side"]) => (
    <>
      <b>{`serial ${serial}`}</b>, written <Age at={time} />, <Size bytes={size} />
      {client && `, by ${say.clientWords(client)}`}
    </>
  );
  return (
    <>
      <p>
        From {side(found.from)} to {side(found.to)}.
      </p>
      {found.lineage_changed && <p class="notice">The lineages differ: these are states of two histories.</p>}
      {found.encrypted ? (
        <Empty title="The client encrypted the state">Only serial, time and size can be compared here.</Empty>
      ) : resources.length || outputs.length ? (
        <p role="status">{say.counts(found.summary)}</p>
      ) : (
        <Empty title="Resources and outputs are the same" />
      )}
      <Changes title="Resources" changes={resources.map((one) => ({ ...one, name: say.resource(one) }))} />
      <Changes title="Outputs" changes={outputs} />
    </>
  );
}

type Value = Partial<Omit<Schemas["AttributeChange"], "path">> & { name: string };
type Change = Value & { attributes?: Schemas["AttributeChange"][] };

const Changes = ({ title, changes }: { title: string; changes: Change[] }) =>
  changes.length > 0 ? (
    <section>
      <h2>{title}</h2>
      <List changes={changes} />
    </section>
  ) : null;

const List = ({ changes }: { changes: Change[] }) => (
  <ul class="changes">
    {changes.map(({ attributes, ...change }) => (
      <li key={change.name}>
        <Changed {...change} />
        {attributes && attributes.length > 0 && (
          <List changes={attributes.map((one) => ({ ...one, name: one.path }))} />
        )}
      </li>
    ))}
  </ul>
);

function Changed({ name, change, before = null, after = null, sensitive }: Value) {
  const known = [before, after].filter((value) => value !== null);
  return (
    <>
      <span class={`badge ${change}`}>{change}</span> <code>{name}</code>{" "}
      {sensitive ? <Hidden sensitive /> : <code class="faint">{say.shortened(known).join(" → ")}</code>}
    </>
  );
}
