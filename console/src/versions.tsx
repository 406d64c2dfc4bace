// The history of a state. Each version says what it changed, once its row is in view.

import { useState } from "preact/hooks";
import { Restore, Undelete } from "./actions";
import { get, type Schemas } from "./api";
import { Deleted, Deleter, useDeletion } from "./deleted";
import { Counts } from "./diff";
import { useInView } from "./in-view";
import { usePages } from "./load";
import { may, useMe } from "./me";
import { Head } from "./parts";
import { failure } from "./problems";
import { href } from "./route";
import { onSession } from "./session";
import { Age, Button, By, entered, For, Shown, Size, Submit, Table } from "./ui";
import * as say from "./words";

type Page = Schemas["VersionPage"];
type Version = Schemas["Version"];
type Summary = Schemas["Differences"]["summary"];
/** What a dialog is about: a version to restore over another, or the deletion to undo. */
type Asked = { version: Version; current: Version } | { marker: string };
/** How a version differs from the one before it, or in a word why that cannot be told. */
type Change = { from: string; summary: Summary; isOther: boolean } | { why: string };

/** Why two versions are not compared, by the code of the API. */
const WHY: Record<string, string> = {
  no_such_version: "there is none before it",
  not_allowed: "not allowed",
  too_large: "too large",
  unreadable_version: "not a state",
};

/** What is known of versions: it stays as it is. It is one session's. */
let changes = new Map<string, Change>();
/** The list that each state's history showed last, for the way back to it. It is one session's. */
let lists = new Map<string, { pages?: Page[] }>();
onSession(() => {
  changes = new Map();
  lists = new Map();
});

/** The versions of a state, and what each changed. Two others are compared if asked, and one is restored. */
export function HistoryPage({ name, isReturn }: { name: string; isReturn: boolean }) {
  const [turn, setTurn] = useState(0);
  const [asked, ask] = useState<Asked>();
  const onDone = () => setTurn((before) => before + 1);
  const shared = { name, onDone, onClose: () => ask(undefined) };
  return (
    <>
      <Head name={name} page="history" />
      <For action="read_history" name={name} what="The history">
        <Versions key={turn} name={name} ask={ask} keeps={isReturn && turn === 0} />
      </For>
      {asked && ("marker" in asked ? <Undelete {...shared} {...asked} /> : <Restore {...shared} {...asked} />)}
    </>
  );
}

type Listed = { name: string; ask: (asked: Asked) => void; keeps: boolean };

/** The list of versions; if it `keeps` what was read, it reads none of that again. */
function Versions({ name, ask, keeps }: Listed) {
  const me = useMe();
  const [picks, setPicks] = useState(false);
  const [kept] = useState(() => (keeps && lists.get(name)) || {});
  lists.set(name, kept);
  const pages = usePages<Page>((cursor, signal) => get(`versions/${name}`, { cursor }, signal), kept);
  const versions = pages.data?.flatMap((page) => page.versions) ?? [];
  const contents = versions.filter((version) => !version.delete_marker);
  const current = versions[0];
  const known = say.acquainted(versions);
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
  const changed = (version: Version) => {
    const at = contents.indexOf(version);
    if (at < 0) return null;
    const isFirst = at + 1 === contents.length && !pages.hasMore && !pages.loading;
    if (isFirst) return <span class="faint">the first version</span>;
    return <Changed name={name} version={version} before={contents[at + 1]} />;
  };
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
        <Age at={version.time} inTable />
        {version.size !== null && ["\u00a0· ", <Size bytes={version.size} />]}
      </>
    ),
    By: (version: Version) =>
      version.delete_marker ? (
        <For action="read_activity" name={name} what="Who deleted it">
          <Deletion name={name} at={version.time} />
        </For>
      ) : (
        <>
          <By of={known(version)} />
          {version.operation && `\u00a0· ${say.operationWords(version.operation)}`}
        </>
      ),
    ...(compares && { Changes: changed }),
    ...(picks && { Compare: (version: Version) => !version.delete_marker && pick(version) }),
    "": (version: Version) =>
      mayRestore &&
      !version.delete_marker &&
      current !== version && (
        <Button aria-label={`Restore ${say.versionWords(version)}`} onClick={() => ask({ version, current })}>
          Restore …
        </Button>
      ),
  };
  const table = () => (
    <form onSubmit={compare}>
      {current?.delete_marker && (
        <Deleted name={name} at={current.time} marker={current.version} undelete={(marker) => ask({ marker })} />
      )}
      <Table rows={versions} name={({ version }) => version} columns={columns} />
      <For action="read" name={name} what="A comparison">
        {compares && (
          <p class="actions">
            <Button aria-pressed={picks} onClick={() => setPicks(!picks)}>
              Compare others
            </Button>
            {picks && <Submit>Compare the two versions</Submit>}
          </p>
        )}
      </For>
    </form>
  );
  return <Shown of={pages} what="versions" show={table} />;
}

/** Who deleted a state and why, as the audit trail says. */
function Deletion({ name, at }: { name: string; at: string }) {
  const { data, error, loading } = useDeletion(name, at);
  if (data) return <Deleter of={data} />;
  return <span class="faint">{loading ? "…" : error ? "no answer" : "not in the audit trail"}</span>;
}

type Compared = { name: string; version: Version; before: Version | undefined };

/** How much a version changed, with a link to what that is. */
function Changed({ name, version, before }: Compared) {
  const to = version.version;
  const load = async (signal: AbortSignal): Promise<Change> => {
    try {
      const found = await get<Schemas["Differences"]>(`diff/${name}`, { from: before?.version, to }, signal);
      if (found.encrypted) return { why: "encrypted" };
      return { from: found.from.version, summary: found.summary, isOther: found.lineage_changed };
    } catch (error) {
      const why = WHY[failure(error).code];
      if (!why) throw error;
      return { why };
    }
  };
  const { data, hasFailed, place } = useInView(changes, `${name} ${to}`, load);
  const summary = data && "summary" in data ? data : undefined;
  const why = data && "why" in data ? data.why : hasFailed && "no answer";
  const from = before?.version ?? summary?.from;
  return (
    <span class="step" ref={place}>
      {summary && <Counts summary={summary.summary} />}
      {summary?.isOther && <span class="badge locked">another lineage</span>}
      {!summary && <span class="faint">{why ? `not compared: ${why}` : "…"}</span>}
      {from && (
        <a href={href({ page: "diff", name, from, to })} aria-label={`What changed in ${say.versionWords(version)}`}>
          What changed
        </a>
      )}
    </span>
  );
}
