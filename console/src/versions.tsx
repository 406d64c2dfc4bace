// The history of a state, and what differs between two of its versions.

import { useState } from "preact/hooks";
import { Restore } from "./actions";
import { get, type Schemas } from "./api";
import { Table } from "./locks";
import { maintains, reads, useMe } from "./me";
import { For, Head, HISTORIANS, Hidden, More, READERS, ShowValues, usePages } from "./parts";
import { href } from "./route";
import { Age, Empty, Loading, Problem, Size, useLoaded, useTick } from "./ui";
import * as say from "./words";

type Version = Schemas["Version"];

/** The versions of a state. Two are picked to see what differs, and one is restored. */
export function HistoryPage({ name }: { name: string }) {
  const [turn, setTurn] = useState(0);
  const [asked, setAsked] = useState<{ version: Version; current: Version }>();
  const onDone = () => setTurn((before) => before + 1);
  useTick();
  return (
    <>
      <Head name={name} page="history" />
      <For roles={HISTORIANS} name={name} what="The history">
        <Versions key={turn} name={name} restore={setAsked} />
      </For>
      {asked && <Restore {...{ name, onDone }} {...asked} onClose={() => setAsked(undefined)} />}
    </>
  );
}

function Versions(props: { name: string; restore: (asked: { version: Version; current: Version }) => void }) {
  const { name, restore } = props;
  const me = useMe();
  const pages = usePages<Schemas["VersionPage"]>((cursor, signal) => get(`versions/${name}`, { cursor }, signal));
  const versions = pages.pages.flatMap((page) => page.versions);
  const current = versions[0];
  const contents = versions.filter((version) => !version.delete_marker);
  const [picked, setPicked] = useState<{ From?: string; To?: string }>({});
  const sides = { From: picked.From ?? contents[1]?.version, To: picked.To ?? contents[0]?.version };
  const compares = reads(me, name) && contents.length > 1;
  const compare = (event: Event) => {
    event.preventDefault();
    const [to, from] = contents.filter(({ version }) => version === sides.From || version === sides.To);
    if (from && to) location.hash = href({ page: "diff", name, from: from.version, to: to.version });
  };
  const pick = (side: "From" | "To", version: Version) => (
    <label>
      <input
        type="radio"
        name={side}
        aria-label={`${side} ${say.versionWords(version)}`}
        checked={version.version === sides[side]}
        onChange={() => setPicked({ ...picked, [side]: version.version })}
      />
      {side}
    </label>
  );
  return (
    <form onSubmit={compare}>
      {compares && (
        <p>
          <button type="submit" class="main" disabled={sides.From === sides.To}>
            Compare the two versions
          </button>
        </p>
      )}
      {current?.delete_marker && (
        <p class="notice">
          The state is deleted. <code>holdfast state undelete {name}</code> brings it back.
        </p>
      )}
      {versions.length > 0 && (
        <Table heads={["Version", "Written", ...(compares ? ["Compare"] : [])]}>
          {versions.map((version) => (
            <tr key={version.version}>
              <th scope="row">
                <div>
                  {version.delete_marker ? "deleted" : say.versionWords(version)}{" "}
                  {version.current && !version.delete_marker && <span class="badge frozen">current</span>}
                  <small>{say.note(version, versions)}</small>
                </div>
              </th>
              <td>
                <div>
                  <Age at={version.time} />
                  {version.size !== null && ", "}
                  {version.size !== null && <Size bytes={version.size} />}
                  {!version.delete_marker && (
                    <small>{[say.writer(version), version.operation].filter(Boolean).join(", ")}</small>
                  )}
                </div>
              </td>
              {compares && (
                <td>
                  <div class="actions">{!version.delete_marker && [pick("From", version), pick("To", version)]}</div>
                </td>
              )}
              <td class="act">
                {maintains(me, name) &&
                  !version.delete_marker &&
                  current &&
                  !current.delete_marker &&
                  current !== version && (
                    <button
                      type="button"
                      aria-label={`Restore ${say.versionWords(version)}`}
                      onClick={() => restore({ version, current })}>
                      Restore …
                    </button>
                  )}
              </td>
            </tr>
          ))}
        </Table>
      )}
      <More pages={pages} what="versions" />
    </form>
  );
}

/** What differs between two versions. */
export function DiffPage({ name, from, to }: { name: string; from: string; to: string }) {
  const [values, setValues] = useState(false);
  const { data, error, loading, again } = useLoaded<Schemas["Differences"]>(
    (signal) => get(`diff/${name}`, { from, to, values: values ? "true" : undefined }, signal),
    [name, from, to, values],
  );
  return (
    <>
      <Head name={name} page="diff" />
      <For roles={READERS} name={name} what="What differs">
        <ShowValues {...{ values, setValues }} />
        {loading && <Loading what="what differs" />}
        {error?.status === 413 ? (
          <Empty title="These versions are too large to compare here">
            <p>{error.message}</p>
          </Empty>
        ) : (
          error && <Problem error={error} again={again} />
        )}
        {data && <Differences found={data} />}
      </For>
    </>
  );
}

function Differences({ found }: { found: Schemas["Differences"] }) {
  const { from, to, resources, outputs } = found;
  const side = ({ serial, time, size, terraform_version: client }: Schemas["Side"]) => (
    <>
      <b>serial {serial}</b>, written <Age at={time} />, <Size bytes={size} />
      {client && `, by client ${client}`}
    </>
  );
  return (
    <>
      <p>
        From {side(from)} to {side(to)}.
      </p>
      {found.lineage_changed && <p class="notice">The lineages differ: these are states of two histories.</p>}
      {found.encrypted ? (
        <Empty title="The client encrypted the state">
          <p>Only serial, time and size can be compared here.</p>
        </Empty>
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

const AT_ONCE = 200; // resources that are drawn until all are asked for

function Changes({ title, changes }: { title: string; changes: Change[] }) {
  const [all, setAll] = useState(false);
  if (!changes.length) return null;
  return (
    <section>
      <h2>{title}</h2>
      <ul class="changes">
        {changes.slice(0, all ? undefined : AT_ONCE).map(({ attributes = [], ...change }) => (
          <li key={change.name}>
            <Changed {...change} />
            {attributes.length > 0 && (
              <ul>
                {attributes.map((attribute) => (
                  <li key={attribute.path}>
                    <Changed {...attribute} name={attribute.path} />
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
      </ul>
      {!all && changes.length > AT_ONCE && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {changes.length.toLocaleString("en")}
        </button>
      )}
    </section>
  );
}

function Changed({ name, change, before = null, after = null, sensitive }: Value) {
  const known = [before, after].filter((value) => value !== null);
  return (
    <>
      <span class={`badge ${change}`}>{change}</span> <code>{name}</code>{" "}
      {sensitive ? <Hidden sensitive /> : <code class="value">{say.shortened(known).join(" → ")}</code>}
    </>
  );
}
