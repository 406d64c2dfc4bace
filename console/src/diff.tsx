// What differs between two versions of a state, as a plan shows it.

import { useState } from "preact/hooks";
import { get, type Schemas } from "./api";
import { alike, type Kind, neighbours, range, SIGNS, type Step, tally } from "./changes";
import { counted } from "./format";
import { compared } from "./lines";
import { useLoaded } from "./load";
import { may, useMe } from "./me";
import { Head, Hidden, ResourceLink, ShowValues } from "./parts";
import { href } from "./route";
import { Age, Button, By, Empty, For, Name, Shown, Size, Status } from "./ui";
import * as say from "./words";

type Found = Schemas["Differences"];
type Resource = Schemas["ResourceChange"];
type Attribute = Schemas["AttributeChange"];
type Version = Schemas["Version"];

const MOST = 200; // resources and groups that are drawn at once
const PAGES = 5; // of the history, in which the versions are looked for

/** What differs between two versions. */
export function DiffPage({ name, from, to }: { name: string; from: string; to: string }) {
  return (
    <>
      <Head name={name} page="diff" />
      <For action="read" name={name} what="What differs">
        <Difference {...{ name, from, to }} />
      </For>
    </>
  );
}

function Difference({ name, from, to }: { name: string; from: string; to: string }) {
  const me = useMe();
  const [values, setValues] = useState(false);
  const found = useLoaded<Found>(
    (signal) => get(`diff/${name}`, { from, to, values: values ? "true" : undefined }, signal),
    [values],
  );
  const history = useLoaded<Version[]>(
    async (signal) => (may(me, "read_history", name) ? versionsUntil(name, [from, to], signal) : []),
    [],
  );
  const versions = history.data ?? [];
  const { before, after } = neighbours(versions, from, to);
  const show = (data: Found) => (
    <>
      <div class="sides">
        <Side side={data.from} versions={versions} />
        <span aria-hidden="true">→</span>
        <Side side={data.to} versions={versions} />
      </div>
      {data.lineage_changed && <p class="notice">The lineages differ: these are different states.</p>}
      {data.encrypted ? (
        <Empty title="The client encrypted the state">Only serial, time and size can be compared here.</Empty>
      ) : (
        <Changes found={data} values={<ShowValues checked={values} onChange={setValues} />} />
      )}
    </>
  );
  return (
    <>
      {(before || after) && (
        <nav class="steps" aria-label="Differences before and after">
          {before && <StepLink name={name} step={before} words="‹ Previous: " />}
          {after && <StepLink name={name} step={after} words="Next: " end=" ›" />}
        </nav>
      )}
      <Shown of={found} what="what differs" show={show} />
    </>
  );
}

/** Returns the versions with content, newest first, until the wanted ones and one more are among them. */
async function versionsUntil(name: string, wanted: string[], signal: AbortSignal): Promise<Version[]> {
  const versions: Version[] = [];
  let cursor: string | undefined;
  for (let turn = 0; turn < PAGES; turn += 1) {
    const page = await get<Schemas["VersionPage"]>(`versions/${name}`, { cursor }, signal);
    versions.push(...page.versions.filter(({ delete_marker }) => !delete_marker));
    cursor = page.next ?? undefined;
    const known = versions.slice(0, -1).map(({ version }) => version);
    if (!cursor || wanted.every((version) => known.includes(version))) break;
  }
  return versions;
}

type Neighbour = { name: string; step: Step; words: string; end?: string };

const StepLink = ({ name, step: { from, to }, words, end }: Neighbour) => (
  <a href={href({ page: "diff", name, from: from.version, to: to.version })}>
    {words}
    {say.versionWords(from)} → {say.versionWords(to)}
    {end}
  </a>
);

function Side({ side, versions }: { side: Schemas["Side"]; versions: Version[] }) {
  const version = versions.find((one) => one.version === side.version);
  const { serial, time, size, operation, terraform_version: client } = side;
  const facts = [say.operationWords(operation), say.clientWords(client)].filter(Boolean);
  const note = version && say.note(version, versions);
  return (
    <div>
      <b>{`serial ${serial}`}</b> {version?.current && <span class="badge frozen">current</span>}
      <div>
        <Age at={time} /> by <By of={version ?? side} />
      </div>
      <small>
        {facts.map((fact) => `${fact} · `)}
        <Size bytes={size} />
        {note && ` · ${note}`}
      </small>
    </div>
  );
}

/** How much differs, by signs; the words are for those who do not see them. */
export function Counts({ summary }: { summary: Found["summary"] }) {
  const counts = tally(summary);
  if (!counts.length) return <span class="faint">nothing</span>;
  return (
    <span class="counts" role="img" aria-label={say.counts(summary)} title={say.counts(summary)}>
      {counts.map(([kind, count]) => (
        <b key={kind} class={`sign ${kind}`}>
          {kind === "output" ? counted(count, "output") : SIGNS[kind] + count.toLocaleString("en")}
        </b>
      ))}
    </span>
  );
}

function Changes({ found, values }: { found: Found; values: ReturnType<typeof ShowValues> }) {
  const [picked, setPicked] = useState<Kind[]>([]);
  const [most, setMost] = useState(MOST);
  const counts = tally(found.summary);
  if (!counts.length) return <Empty title="Resources and outputs are the same" />;
  const isShown = (kind: Kind) => !picked.length || picked.includes(kind);
  const resources = found.resources.filter(({ change }) => isShown(change));
  const groups = alike(resources);
  const outputs = isShown("output") ? found.outputs : [];
  const pick = (kind: Kind) =>
    setPicked(picked.includes(kind) ? picked.filter((one) => one !== kind) : [...picked, kind]);
  return (
    <>
      <div class="tools">
        <fieldset class="chips" aria-label="Show only">
          {counts.map(([kind, count]) => (
            <Button key={kind} class={`sign ${kind}`} aria-pressed={picked.includes(kind)} onClick={() => pick(kind)}>
              {kind === "output" ? counted(count, "output") : `${SIGNS[kind]} ${count.toLocaleString("en")} ${kind}`}
            </Button>
          ))}
        </fieldset>
        {values}
      </div>
      <Status>{picked.length > 0 && `Shown: ${picked.join(", ")}`}</Status>
      {groups.length > 0 && (
        <section>
          <h2>Resources</h2>
          <ul class="plan">
            {groups.slice(0, most).map((group) => (
              <Group key={group[0]?.address} group={group} found={found} />
            ))}
          </ul>
          {groups.length > most && <Button onClick={() => setMost(most + MOST)}>Show more resources</Button>}
        </section>
      )}
      {outputs.length > 0 && (
        <section>
          <h2>Outputs</h2>
          <ul class="plan">
            {outputs.map((output) => (
              <li key={output.name}>
                <Sign kind={output.change} />
                <code>
                  <Name>{output.name}</Name>
                </code>{" "}
                <small>{say.marked(output.now_sensitive)}</small>{" "}
                {found.values && !output.sensitive ? <Lines {...output} /> : <Hidden sensitive={output.sensitive} />}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

/** The sign of a kind of change, with its name for those who do not see it. */
export const Sign = ({ kind }: { kind: keyof typeof SIGNS }) => (
  <span class={`sign ${kind}`} title={kind}>
    <span aria-hidden="true">{SIGNS[kind]}</span>
    <span class="unseen">{kind} </span>
  </span>
);

function Group({ group, found }: { group: Resource[]; found: Found }) {
  const [first] = group;
  if (!first) return null;
  if (group.length === 1) return <One resource={first} found={found} />;
  return (
    <li>
      <details>
        <summary>
          <Sign kind={first.change} />
          <code>
            <Name>{range(group.map(({ address }) => address))}</Name>
          </code>{" "}
          <small>{`${group.length} alike`}</small>
          {!found.values && <Names attributes={first.attributes} />}
        </summary>
        <ul class="plan">
          {group.map((resource) => (
            <One key={resource.address} resource={resource} found={found} />
          ))}
        </ul>
      </details>
    </li>
  );
}

function One({ resource, found }: { resource: Resource; found: Found }) {
  const { address, change, attributes } = resource;
  const version = (change === "removed" ? found.from : found.to).version;
  return (
    <li>
      <Sign kind={change} />
      <ResourceLink {...{ name: found.name, address, version }} /> <small>{say.resource(resource)}</small>
      {attributes.length > 0 && <Values attributes={attributes} values={found.values} />}
    </li>
  );
}

const Values = ({ attributes, values }: { attributes: Attribute[]; values: boolean }) =>
  values ? (
    <dl class="values">
      {attributes.map((attribute) => (
        <div key={attribute.path}>
          <dt>
            <code>
              <Name>{attribute.path}</Name>
            </code>
          </dt>
          <dd>{attribute.sensitive ? <Hidden sensitive change={attribute.change} /> : <Lines {...attribute} />}</dd>
        </div>
      ))}
    </dl>
  ) : (
    <Names attributes={attributes} />
  );

/** The names of attributes whose values are not shown. */
export const Names = ({ attributes }: { attributes: Attribute[] }) => (
  <span class="names">
    {attributes.map(({ path, change, sensitive }, at) => (
      <span key={path}>
        {at > 0 && ", "}
        {change !== "changed" && `${SIGNS[change]} `}
        <code>
          <Name>{path}</Name>
        </code>
        {sensitive && [" ", <Hidden key="hidden" sensitive />]}
      </span>
    ))}
  </span>
);

const ELEMENTS = { "": "span", "…": "small", "+": "ins", "−": "del" } as const;

function Lines({ before, after }: { before: string | null; after: string | null }) {
  return (
    <code class="lines">
      {compared(before, after).map(({ sign, text }) => {
        const Line = ELEMENTS[sign];
        return (
          <Line>
            <span aria-hidden="true">{sign}</span>
            <span>{text}</span>
          </Line>
        );
      })}
    </code>
  );
}
