// What happened lately, for auditors and maintainers.

import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, get, type Schemas } from "./api";
import { now } from "./clock";
import { counted } from "./format";
import { Table } from "./locks";
import { audits, useMe } from "./me";
import { failure } from "./problems";
import { href, type Query } from "./route";
import { type Event, fields, type Search, selected, text, whose } from "./trail";
import { Age, Empty, Loading, Problem, useQuery } from "./ui";

const ENOUGH = 50; // events after which the page asks whether to go on
const PAGES = 10; // pages after which it asks, whatever it found
const TIMES = { "1h": "the last hour", "": "the last day", "7d": "the last 7 days", "30d": "the last 30 days" };
const HOURS: Record<string, number> = { "1h": 1, "7d": 7 * 24, "30d": 30 * 24 };
const KINDS = { "": "all but reading", writes: "writes only", all: "everything" };

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

function Trail(props: { query: Query }) {
  const [query, change] = useQuery("activity", props.query);
  const { state = "", since = "", kind = "", principal = "" } = query;
  const { events, kinds, next, loading, error, more, again } = useEvents(state, since, { kind, principal });
  const ask = (form: HTMLFormElement) => {
    const given = [...new FormData(form)].map(([name, value]) => [name, String(value).trim()]);
    change(Object.fromEntries(given));
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    ask(event.currentTarget as HTMLFormElement);
  };
  const names = [...new Set([...kinds, kind])].filter((name) => name.includes(".")).sort();
  return (
    <>
      <h1>Activity</h1>
      <form class="tools" onSubmit={submit} onChange={(event) => ask(event.currentTarget)}>
        <label>
          State <input name="state" value={state} placeholder="any" spellcheck={false} />
        </label>
        <label>
          Principal <input name="principal" value={principal} placeholder="anybody" spellcheck={false} />
        </label>
        <Choice title="Events" name="kind" value={kind} of={[...Object.entries(KINDS), ...names.map(twice)]} />
        <Choice title="Of" name="since" value={since} of={Object.entries(TIMES)} />
        <button type="button" onClick={again}>
          Refresh
        </button>
        <p role="status" class="faint">
          {loading ? "Searching …" : counted(events.length, "event")}
        </p>
      </form>
      {error && <Problem error={error} again={events.length ? more : again} />}
      {events.length > 0 && (
        <div class="events">
          <Table heads={["Time", "Event", "Who", "State", "Details"]}>{events.map(row)}</Table>
        </div>
      )}
      {!events.length && !error && !loading && (
        <Empty title="No such event">
          <p>Choose a longer time or more events. An event arrives here within seconds.</p>
        </Empty>
      )}
      {next && !loading && !error && (
        <button type="button" onClick={more}>
          Search further back
        </button>
      )}
    </>
  );
}

const twice = (name: string): [string, string] => [name, name];

function Choice(props: { title: string; name: string; value: string; of: [string, string][] }) {
  return (
    <label>
      {props.title}
      <select name={props.name} value={props.value}>
        {props.of.map(([value, shown]) => (
          <option key={value} value={value}>
            {shown}
          </option>
        ))}
      </select>
    </label>
  );
}

function row(event: Event) {
  const { told, rest } = fields(event);
  const state = text(event, "state");
  return (
    <tr key={text(event, "id")}>
      <td>
        <Age at={text(event, "time")} />
      </td>
      <td>{text(event, "event")}</td>
      <td title={text(event, "principal")}>{whose(event)}</td>
      <td>{state && <a href={href({ page: "state", name: state })}>{state}</a>}</td>
      <td>
        <details>
          <summary>{told.map(([field, value]) => `${field}=${value}`).join(" ") || "more"}</summary>
          <dl>
            {[...told, ...rest].map(([field, value]) => (
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
}

/** Reads pages of the trail until enough events are found; `more` goes on, `again` begins anew. */
function useEvents(state: string, time: string, search: Search) {
  const [found, setFound] = useState<Found>({ events: [], kinds: [], next: null, loading: true });
  const running = useRef<AbortController | undefined>(undefined);
  const read = async ({ events, kinds, next }: Found) => {
    running.current?.abort();
    const abort = new AbortController();
    running.current = abort;
    const known = new Set(events.map((event) => text(event, "id")));
    const enough = events.length + ENOUGH;
    const since = new Date(now() - (HOURS[time] ?? 24) * 3_600_000).toISOString().replace(/\.\d+/, "");
    const show = (more: Partial<Found>) => setFound({ events, kinds, next, loading: true, ...more });
    show({});
    try {
      for (let pages = 0; pages < PAGES && events.length < enough && (next || !pages); pages++) {
        const asked = { state: state || undefined, since, cursor: next ?? undefined };
        const page: Schemas["Activity"] = await get("activity", asked, abort.signal);
        const read: Event[] = page.events;
        // An event can be in the trail twice.
        const fresh = read.filter((event) => selected(event, search) && !known.has(text(event, "id")));
        for (const event of fresh) known.add(text(event, "id"));
        events = [...events, ...fresh];
        kinds = [...new Set([...kinds, ...read.map((event) => text(event, "event"))])];
        next = page.next;
        show({});
      }
      show({ loading: false });
    } catch (error) {
      if (!abort.signal.aborted) show({ loading: false, error: failure(error) });
    }
  };
  const again = () => read({ events: [], kinds: found.kinds, next: null, loading: true });
  useEffect(() => {
    again();
    return () => running.current?.abort();
  }, [state, time, search.kind, search.principal]);
  return { ...found, more: () => read(found), again };
}
