// Finds the state of a resource. What is looked for is in no address, and so in no history of the browser.

import { useState } from "preact/hooks";
import { type Schemas, send } from "./api";
import { bytes, counted } from "./format";
import { useLoaded } from "./load";
import { ResourceLink } from "./parts";
import { href } from "./route";
import { onSession } from "./session";
import { Choice, Empty, entered, Field, For, Shown, StateLink, Submit } from "./ui";

type Page = Schemas["FoundPage"];

const PAUSE = 1000; // milliseconds from one request to the next: the API accepts one a second
const NOTHING: Page = { states: [], skipped: [], searched: 0, left: null, next: null };
const FEW = 5; // resources of a state that are shown at first; one more is shown, too
const KINDS = { address: "address", type: "type", id: "ID" };
const WORDS = { address: "A part of its address", type: "Its whole type", id: "Its whole ID, ARN or self link" };
const WHY = {
  too_large: "too large",
  encrypted: "encrypted by its client",
  unreadable: "not version 4 of the state format",
};

type By = keyof typeof KINDS;
/** What was asked for, and what was found so far. */
type Search = { by: By; word: string; prefix: string; turn: number; found: Page; isWhole: boolean };

/** The last search, so that coming back from a state shows it at once. It is one session's. */
let last: Search | undefined;
onSession(() => {
  last = undefined;
});

/** Opens the page and searches for resources by a part of their address. */
export function lookFor(word: string): void {
  last = { by: "address", word, prefix: "", turn: 1, found: NOTHING, isWhole: false };
  location.hash = href({ page: "find" });
}

export function FindPage() {
  const [by, setBy] = useState<By>(last?.by ?? "address");
  const [search, setSearch] = useState(last);
  const start = (event: Event) => {
    const { word = "", prefix = "" } = entered(event);
    last = { by, word, prefix, turn: (search?.turn ?? 0) + 1, found: NOTHING, isWhole: false };
    setSearch(last);
  };
  const earlier = search?.by === by ? search.word : "";
  return (
    <>
      <h1>Find a resource</h1>
      <For action="read" what="The search">
        <form class="asked" onSubmit={start}>
          <Choice label="Find by" name="by" value={by} of={KINDS} onChange={(chosen) => setBy(chosen as By)} />
          <Field label={WORDS[by]} name="word" defaultValue={earlier} required pattern=".*\S.*" maxLength={1000} />
          <Field
            label="Only in states that begin with (optional)"
            name="prefix"
            defaultValue={search?.prefix}
            maxLength={1000}
          />
          <Submit>Find</Submit>
        </form>
        {search && <Found key={search.turn} search={search} />}
      </For>
    </>
  );
}

/** Searches page after page, never two at once; after a failure it goes on behind what was found before. */
function Found({ search }: { search: Search }) {
  const { by, word, prefix } = search;
  const searching = useLoaded<Page>(
    async (signal, show) => {
      while (!search.isWhole && !signal.aborted) {
        const begun = Date.now();
        const { states, skipped, searched, next } = search.found;
        const wanted = { [by]: word, ...(prefix && { prefix }), ...(next && { cursor: next }) };
        const page = await send<Page>("POST", "find", wanted, signal);
        search.found = {
          ...page,
          states: [...states, ...page.states],
          skipped: [...skipped, ...page.skipped],
          searched: searched + page.searched,
        };
        search.isWhole = page.next === null;
        show(search.found);
        if (page.next) await new Promise((resolve) => setTimeout(resolve, begun + PAUSE - Date.now()));
      }
      return search.found;
    },
    [],
    0,
    search.found !== NOTHING ? { data: search.found, at: search.isWhole ? Infinity : 0 } : undefined,
  );
  const show = (page: Page) => <Matches page={page} isSearching={searching.loading && page.next !== null} />;
  return <Shown of={searching} what="states" show={show} />;
}

const Addresses = ({ name, resources }: Pick<Page["states"][number], "name" | "resources">) => (
  <ul>
    {resources.map(({ address, deposed }) => (
      <li key={address + deposed}>
        <ResourceLink {...{ name, address }} />
      </li>
    ))}
  </ul>
);

function Matches({ page, isSearching }: { page: Page; isSearching: boolean }) {
  const { states, skipped, searched, left } = page;
  const all = searched + (left ?? 0);
  const read = searched - skipped.length;
  const matches = states.reduce((sum, state) => sum + state.matches, 0);
  return (
    <>
      <p role="status">
        <b>{`${counted(matches, "resource")} in ${counted(states.length, "state")}`}</b>
        <span class="faint">
          {" · "}
          {(left !== null || skipped.length > 0) && `${read.toLocaleString("en")} of `}
          {`${counted(all, "state")} searched${isSearching ? " so far …" : ""}`}
        </span>
      </p>
      {isSearching && <progress aria-label="Searched" max={left === null ? undefined : all} value={searched} />}
      {!page.next && !states.length && (
        <Empty title="No searched state has it">
          Only states that you may read were searched; sensitive values are not compared.
        </Empty>
      )}
      <ul class="found">
        {states.map(({ name, matches: count, resources }) => (
          <li key={name}>
            <StateLink name={name} /> <small>{counted(count, "resource")}</small>
            <Addresses name={name} resources={resources.slice(0, count > FEW + 1 ? FEW : count)} />
            {count > FEW + 1 && (
              <details>
                <summary>{`${(count - FEW).toLocaleString("en")} more`}</summary>
                <Addresses name={name} resources={resources.slice(FEW)} />
                {count > resources.length && <p class="faint">{`and ${counted(count - resources.length, "other")}`}</p>}
              </details>
            )}
          </li>
        ))}
      </ul>
      {skipped.length > 0 && (
        <details open>
          <summary>{`${counted(skipped.length, "state")} not searched`}</summary>
          <ul>
            {skipped.map(({ name, why, size }) => (
              <li key={name}>
                <StateLink name={name} />
                {`: ${WHY[why]} (${bytes(size)})`}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}
