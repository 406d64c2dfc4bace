// What happened lately, for auditors and maintainers.

import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, get, type Schemas } from "./api";
import { now } from "./clock";
import { counted } from "./format";
import { audits, useMe } from "./me";
import { failure } from "./problems";
import { href, type Query } from "./route";
import { type Event, fields, selected, text, whose } from "./trail";
import { Age, Empty, Loading, Problem, useTick } from "./ui";

const ENOUGH = 50; // events after which the page asks whether to go on
const PAGES = 10; // pages after which it asks, whatever it found
const TIMES: [string, string, number][] = [
  ["1h", "the last hour", 3_600],
  ["", "the last day", 86_400],
  ["7d", "the last 7 days", 7 * 86_400],
  ["30d", "the last 30 days", 30 * 86_400],
];
const KINDS: [string, string][] = [
  ["", "all but reading"],
  ["writes", "writes only"],
  ["all", "everything"],
];

type Found = { events: Event[]; kinds: string[]; next: string | null; loading: boolean; error?: ApiError };

export function ActivityPage({ query }: { query: Query }) {
  const me = useMe();
  if (!me) return <Loading what="the activity" />;
  if (audits(me)) return <Trail query={query} />;
  return (
    <>
      <h1>Activity</h1>
      <Empty title="The activity is for auditors and maintainers">
        <p>A maintainer can give you the role auditor: it reads the trail, and no state's content.</p>
      </Empty>
    </>
  );
}

function Trail({ query }: { query: Query }) {
  const search = { kind: query.kind ?? "", principal: query.principal ?? "" };
  const { events, kinds, next, loading, error, more, again } = useEvents(query, search);
  useTick();
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    ask(event.currentTarget as HTMLFormElement);
  };
  return (
    <>
      <h1>Activity</h1>
      <form class="tools" onSubmit={submit} onChange={(event) => ask(event.currentTarget)}>
        <label>
          State <input name="state" value={query.state ?? ""} placeholder="any" spellcheck={false} />
        </label>
        <label>
          Principal{" "}
          <input name="principal" value={search.principal} placeholder="anybody" spellcheck={false} />
        </label>
        <label>
          Events
          <select name="kind" value={search.kind}>
            {[...KINDS, ...[...new Set([...kinds, search.kind])].filter(isName).sort().map(twice)].map(
              ([value, title]) => (
                <option key={value} value={value}>
                  {title}
                </option>
              ),
            )}
          </select>
        </label>
        <label>
          Of
          <select name="since" value={query.since ?? ""}>
            {TIMES.map(([value, title]) => (
              <option key={value} value={value}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <button type="button" onClick={again}>
          Refresh
        </button>
        <p role="status" class="faint">
          {loading ? "Searching …" : counted(events.length, "event")}
        </p>
      </form>
      {error && <Problem error={error} again={events.length ? more : again} />}
      {events.length > 0 && <Events events={events} />}
      {!events.length && !error && loading && <Loading what="the events" />}
      {!events.length && !error && !loading && (
        <Empty title="No such event">
          <p>Choose a longer time or more events. An event arrives here within seconds.</p>
        </Empty>
      )}
      {next && !loading && !error && (
        <p>
          <button type="button" onClick={more}>
            Search further back
          </button>
        </p>
      )}
    </>
  );
}

const isName = (kind: string): boolean => kind.includes(".");
const twice = (kind: string): [string, string] => [kind, kind];

/** Goes to the address of what the form asks for. */
function ask(form: HTMLFormElement): void {
  const query = [...new FormData(form)].map(([name, value]) => [name, String(value).trim()]);
  location.hash = href({ page: "activity", query: Object.fromEntries(query) });
}

const Events = ({ events }: { events: Event[] }) => (
  <div class="wide">
    <table class="events stack">
      <thead>
        <tr>
          {["Time", "Event", "Who", "State", "Details"].map((head) => (
            <th key={head} scope="col">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {events.map((event, at) => {
          const { told, rest } = fields(event);
          const state = text(event, "state");
          return (
            <tr key={text(event, "id") || at}>
              <td>
                <Age at={text(event, "time")} />
              </td>
              <td>{text(event, "event")}</td>
              <td data-label="Who" title={text(event, "principal")}>
                {whose(event)}
              </td>
              <td data-label="State">
                {state && <a href={href({ page: "state", name: state })}>{state}</a>}
              </td>
              <td>
                <details>
                  <summary>{told.map(([field, value]) => `${field}=${value}`).join(" ") || "more"}</summary>
                  <dl>
                    {[...told, ["principal", text(event, "principal")], ...rest].map(([field, value]) => (
                      <div key={field}>
                        <dt>{field}</dt>
                        <dd>{value}</dd>
                      </div>
                    ))}
                  </dl>
                </details>
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  </div>
);

/** Reads pages of the trail until enough events are found; `more` goes on, `again` begins anew. */
function useEvents(query: Query, search: { kind: string; principal: string }) {
  const [found, setFound] = useState<Found>({ events: [], kinds: [], next: null, loading: true });
  const running = useRef<AbortController | undefined>(undefined);
  const seconds = TIMES.find(([value]) => value === (query.since ?? ""))?.[2] ?? 86_400;
  const read = async (before: Found) => {
    running.current?.abort();
    const abort = new AbortController();
    running.current = abort;
    let { events, kinds, next } = before;
    setFound({ events, kinds, next, loading: true });
    const enough = events.length + ENOUGH;
    const since = new Date(now() - seconds * 1000).toISOString().replace(/\.\d+/, "");
    try {
      for (let pages = 0; pages < PAGES && events.length < enough; pages++) {
        const asked = { state: query.state || undefined, since, cursor: next ?? undefined };
        const page = await get<Schemas["Activity"]>("activity", asked, abort.signal);
        const read: Event[] = page.events;
        const seen = new Set(events.map((event) => text(event, "id")));
        events = [
          ...events,
          ...read.filter((event) => selected(event, search) && !seen.has(text(event, "id"))),
        ];
        kinds = [...new Set([...kinds, ...read.map((event) => text(event, "event"))])];
        next = page.next;
        setFound({ events, kinds, next, loading: next !== null });
        if (next === null) break;
      }
      setFound({ events, kinds, next, loading: false });
    } catch (error) {
      if (!abort.signal.aborted) setFound({ events, kinds, next, loading: false, error: failure(error) });
    }
  };
  const again = () => read({ events: [], kinds: found.kinds, next: null, loading: true });
  useEffect(() => {
    again();
    return () => running.current?.abort();
  }, [query.state, query.since, search.kind, search.principal]);
  return { ...found, more: () => read(found), again };
}
