// What happened lately, for those who may read the audit trail.

import { useState } from "preact/hooks";
import { get, type Schemas } from "./api";
import { now } from "./clock";
import { counted, moment } from "./format";
import { usePages, useQuery } from "./load";
import { Head } from "./parts";
import type { Query } from "./route";
import { type Event, eventWords, fields, isPattern, people, type Row, rows, selected, text, told } from "./trail";
import {
  Age,
  Button,
  By,
  Choice,
  Empty,
  entered,
  Facts,
  Field,
  For,
  Name,
  Shown,
  StateLink,
  Status,
  Table,
} from "./ui";

const ENOUGH = 50; // events after which the page asks whether to go on
const MOST = 10; // pages of the trail after which it asks, whatever it found
const HOURS = { 1: "1 hour", 24: "1 day", 168: "7 days", 720: "30 days" };
const KINDS = { "": "all but reading", writes: "writes only", all: "everything" };

/** What happened lately: to all states, or to one as a page of it. */
export function ActivityPage({ name, query: given = {} }: { name?: string; query?: Query }) {
  const [query, change] = useQuery({ page: "activity", ...(name && { name }) }, given);
  const [turn, setTurn] = useState(0);
  const { state = "", principal = "", kind = "", hours = name ? "168" : "24" } = query;
  const ask = (event: globalThis.Event) => change(entered(event));
  return (
    <>
      {name ? <Head name={name} page="activity" /> : <h1>Activity</h1>}
      <For action="read_activity" name={name} what="The activity">
        <form class="asked" onSubmit={ask} onChange={ask}>
          {!name && <Field label="State" name="state" defaultValue={state} placeholder="any" />}
          <Field label="Who" name="principal" defaultValue={principal} placeholder="anybody" />
          <Choice label="Events" name="kind" value={kind} of={KINDS} />
          <Choice label="In the last" name="hours" value={hours} of={HOURS} />
          <Button onClick={() => setTurn(turn + 1)}>Refresh</Button>
        </form>
        <Events key={JSON.stringify([query, turn])} {...{ state: name ?? state, principal, kind, hours }} />
      </For>
    </>
  );
}

type Asked = { state: string; principal: string; kind: string; hours: string };

function Events(asked: Asked) {
  const trail = usePages<{ events: Event[]; next: string | null }>(async (cursor, signal, show) => {
    const since = moment(now() - (Number(asked.hours) || 24) * 3_600_000);
    const found: Event[] = [];
    let next = cursor;
    for (let pages = 0; pages < MOST && found.length < ENOUGH && (next || !pages); pages++) {
      const page: Schemas["Activity"] = await get("activity", { state: asked.state, since, cursor: next }, signal);
      found.push(...page.events.filter((event) => selected(event, asked)));
      next = page.next ?? undefined;
      if (found.length) show({ events: [...found], next: null });
    }
    return { events: found, next: next ?? null };
  });
  const table = (pages: { events: Event[] }[]) => {
    const all = pages.flatMap(({ events }) => events);
    const events = [...new Map(all.map((event) => [text(event, "id"), event])).values()]; // some are there twice
    if (!events.length) return <Empty title="No such event">Choose a longer time, or more events.</Empty>;
    const who = people(all);
    const shown = rows(events);
    return (
      <>
        <Status>
          {counted(shown.length, "event") + (trail.loading ? " so far …" : trail.hasMore ? " so far" : "")}
        </Status>
        <Table<Row>
          rows={shown}
          name={({ event }) => text(event, "id")}
          columns={{
            Time: ({ event }) => <Age at={text(event, "time")} />,
            Event: ({ event }) => <span class="whole">{eventWords(text(event, "event"))}</span>,
            Who: ({ event }) => <By of={who(event)} />,
            ...(!asked.state && {
              State: ({ event: { state } }: Row) =>
                typeof state === "string" && (isPattern(state) ? <Name>{state}</Name> : <StateLink name={state} />),
            }),
            Details: (row) => <Details {...row} events={all} />,
          }}
        />
      </>
    );
  };
  return <Shown of={trail} what="events" show={table} />;
}

/** What happened in words; opened also the fields of the event, with its IDs, and the states of a pattern's freeze. */
function Details({ event, states, events }: Row & { events: Event[] }) {
  const words = told(event, events, states.length);
  return (
    <details>
      <summary>{words ? <Name>{words}</Name> : <span class="faint">details</span>}</summary>
      {states.map((name) => (
        <div key={name}>
          <StateLink name={name} />
        </div>
      ))}
      <Facts facts={Object.fromEntries(fields(event))} />
    </details>
  );
}
