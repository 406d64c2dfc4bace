// The versions that changed a resource.

import { useRef, useState } from "preact/hooks";
import { get, type Schemas } from "./api";
import { Names, Sign } from "./diff";
import { counted } from "./format";
import { usePages } from "./load";
import { href } from "./route";
import { Age, Button, By, Shown, Status } from "./ui";
import * as say from "./words";

type Version = Schemas["Version"];
type Resource = Schemas["ResourceChange"];
type Step = { from: Version; to: Version; change: Resource };
type Page = { steps: Step[]; compared: number; next: string | null };
/** Where the search is: the version that is compared next, if it is known, and the address of the resource in it. */
type Place = { newer: Version | undefined; address: string; isReached: boolean };
type Asked = { name: string; address: string; version: string | undefined };

/** Looks for the versions that changed a resource, if that is asked for: it compares each with the one before it. */
export function Trace(asked: Asked) {
  const [isAsked, setAsked] = useState(false);
  if (!isAsked) return <Button onClick={() => setAsked(true)}>Which versions changed it?</Button>;
  return <Traced {...asked} />;
}

function Traced({ name, address, version }: Asked) {
  const place = useRef<Place>({ newer: undefined, address, isReached: version === undefined });
  const pages = usePages<Page>(async (cursor, signal, show) => {
    const { versions, next } = await get<Schemas["VersionPage"]>(`versions/${name}`, { cursor }, signal);
    const at = { ...place.current };
    const page: Page = { steps: [], compared: 0, next };
    for (const older of versions.filter(({ delete_marker }) => !delete_marker)) {
      const { newer } = at;
      at.newer = older;
      at.isReached ||= newer?.version === version;
      if (!newer || !at.isReached) continue;
      const query = { from: older.version, to: newer.version };
      const { resources } = await get<Schemas["Differences"]>(`diff/${name}`, query, signal);
      const change = resources.find((one) => one.address === at.address);
      page.compared += 1;
      if (change) page.steps.push({ from: older, to: newer, change });
      if (change?.change === "added") return { ...page, next: null }; // nothing before it has the resource
      at.address = change?.moved_from ?? at.address;
      show({ ...page, steps: [...page.steps] });
    }
    place.current = at;
    return page;
  });
  const show = (read: Page[]) => {
    const steps = read.flatMap((page) => page.steps);
    const compared = read.reduce((sum, page) => sum + page.compared, 0);
    return (
      <>
        <Status>{`${steps.length} of ${counted(compared, "version")} changed it${pages.loading ? " so far …" : "."}`}</Status>
        <ul class="plan">
          {steps.map(({ from, to, change }) => (
            <li key={to.version}>
              <Sign kind={change.change} />
              <a href={href({ page: "diff", name, from: from.version, to: to.version })}>{say.versionWords(to)}</a>,{" "}
              <Age at={to.time} inTable /> by <By of={to} /> <small>{say.resource(change)}</small>
              <Names attributes={change.attributes} />
            </li>
          ))}
        </ul>
      </>
    );
  };
  return (
    <section>
      <h2>Versions that changed it</h2>
      <Shown of={pages} what="versions" show={show} />
    </section>
  );
}
