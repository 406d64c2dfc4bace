// The attributes of one resource, as a version of the state has them.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { get, type Schemas } from "./api";
import { counted } from "./format";
import { read } from "./lines";
import { useLoaded } from "./load";
import { may, useMe } from "./me";
import { Head, Hidden, ShowValues } from "./parts";
import { href } from "./route";
import { Trace } from "./trace";
import { Age, By, Copy, Facts, For, Name, Shown, Status } from "./ui";
import * as say from "./words";

type Found = Schemas["Attributes"];
type Asked = { name: string; address: string; version?: string | undefined };

/** The attributes of a resource, now or in a version. */
export function ResourcePage(asked: Asked) {
  const { name, address } = asked;
  return (
    <>
      <Head name={name} page="resource" />
      <div class="title">
        <h2 class="address">
          <Name>{address}</Name>
        </h2>
        <Copy text={address} what="the address" />
      </div>
      <For action="read" name={name} what="The list of attributes">
        <Attributes {...asked} />
      </For>
    </>
  );
}

function Attributes({ name, address, version }: Asked) {
  const me = useMe();
  const [values, setValues] = useState(false);
  const found = useLoaded<Found>(
    (signal) => get(`attributes/${name}`, { address, version, values: values ? "true" : undefined }, signal),
    [values],
  );
  const facts = (data: Found) => ({
    Type: data.type,
    Provider: data.provider,
    Tainted: data.tainted ? "the next apply replaces it" : "",
    Version: may(me, "read_history", name) ? <Moment key={data.version} name={name} version={data.version} /> : "",
  });
  const show = (data: Found) => (
    <>
      <Facts facts={facts(data)} />
      {version && (
        <p>
          <a href={href({ page: "resource", name, address })}>Show it as it is now</a>
        </p>
      )}
      <Listed found={data} values={<ShowValues checked={values} onChange={setValues} />} />
      {may(me, "read_history", name) && <Trace {...{ name, address, version }} />}
    </>
  );
  return <Shown of={found} what="attributes" show={show} />;
}

/** Which version of the state it is, and who wrote it. */
function Moment({ name, version }: { name: string; version: string }) {
  const read = useLoaded<Schemas["VersionPage"]>((signal) => get(`versions/${name}`, { version }, signal), []);
  const [found] = read.data?.versions ?? [];
  if (!found) return <span class="faint">{read.loading ? "…" : version}</span>;
  return (
    <>
      {say.versionWords(found)}, <Age at={found.time} /> by <By of={found} />{" "}
      {found.current && <span class="badge frozen">current</span>}
    </>
  );
}

function Listed({ found, values }: { found: Found; values: ComponentChildren }) {
  const [typed, setTyped] = useState("");
  const all = found.attributes;
  const wanted = typed.toLowerCase().trim();
  const shown = all.filter(({ path }) => path.toLowerCase().includes(wanted));
  return (
    <>
      <search class="tools">
        <input
          type="search"
          aria-label="Filter the attributes by name"
          placeholder="Filter by name"
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        {values}
        <Status>
          {shown.length < all.length && `${shown.length.toLocaleString("en")} of `}
          {counted(all.length, "attribute")}
        </Status>
      </search>
      <dl class="values attributes">
        {shown.map(({ path, value, sensitive }) => (
          <div key={path}>
            <dt>
              <code>
                <Name>{path}</Name>
              </code>
            </dt>
            <dd>
              {value === null ? <Hidden sensitive={sensitive} /> : <code class="text">{read(value).join("\n")}</code>}
            </dd>
          </div>
        ))}
      </dl>
      <p class="faint">
        Values that the state marks as sensitive are never shown. A state may lack marks, especially an older one.
        Attributes that are null are not shown.
      </p>
    </>
  );
}
