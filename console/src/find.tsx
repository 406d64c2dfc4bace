// Finds the state of a resource. What is looked for is in no address, and so in no history of the browser.

import { useRef, useState } from "preact/hooks";
import { type Schemas, send } from "./api";
import { bytes, counted } from "./format";
import { useLoaded } from "./load";
import { Choice, Empty, entered, Field, For, Shown, StateLink, Submit } from "./ui";

type Page = Schemas["FoundPage"];

const PAUSE = 1000; // milliseconds from one request to the next: the API accepts one a second
const NOTHING: Page = { states: [], skipped: [], searched: 0, left: null, next: null };
const KINDS = { address: "A part of its address", type: "Its whole type", id: "Its whole ID, ARN or self link" };
const WHY = {
  too_large: "too large",
  encrypted: "encrypted by its client",
  unreadable: "not a state of version 4 of the format",
};

export function FindPage() {
  const [by, setBy] = useState<keyof typeof KINDS>("address");
  const [search, setSearch] = useState<{ wanted: Schemas["Find"]; turn: number }>();
  const start = (event: Event) => {
    const { word = "", prefix } = entered(event);
    setSearch({ wanted: { [by]: word, ...(prefix ? { prefix } : {}) }, turn: (search?.turn ?? 0) + 1 });
  };
  return (
    <>
      <h1>Find a resource</h1>
      <For action="read" what="The search">
        <form class="form" onSubmit={start}>
          <Choice label="Find by" name="by" value={by} of={KINDS} onChange={(chosen) => setBy(chosen as typeof by)} />
          <Field label={KINDS[by]} name="word" required pattern=".*\S.*" maxLength={1000} />
          <Field label="Only in states whose names begin with (optional)" name="prefix" maxLength={1000} />
          <Submit>Find</Submit>
        </form>
        {search && <Found key={search.turn} wanted={search.wanted} />}
      </For>
    </>
  );
}

/** Searches page after page, never two at once; after a failure it goes on behind what was found before. */
function Found({ wanted }: { wanted: Schemas["Find"] }) {
  const found = useRef(NOTHING);
  const search = useLoaded<Page>(async (signal, show) => {
    do {
      const begun = Date.now();
      const { states, skipped, searched, next } = found.current;
      const page = await send<Page>("POST", "find", { ...wanted, ...(next ? { cursor: next } : {}) }, signal);
      found.current = {
        ...page,
        states: [...states, ...page.states],
        skipped: [...skipped, ...page.skipped],
        searched: searched + page.searched,
      };
      show(found.current);
      await new Promise((resolve) => setTimeout(resolve, begun + PAUSE - Date.now()));
    } while (found.current.next && !signal.aborted);
    return found.current;
  }, []);
  const show = (page: Page) => <Matches page={page} isSearching={search.loading && page.next !== null} />;
  return <Shown of={search} what="states" show={show} />;
}

function Matches({ page, isSearching }: { page: Page; isSearching: boolean }) {
  const { states, skipped, searched, left } = page;
  const all = searched + (left ?? 0);
  const matches = states.reduce((sum, state) => sum + state.matches, 0);
  return (
    <>
      <p role="status">
        {left !== null && `${searched.toLocaleString("en")} of `}
        {`${counted(all, "state")} searched${isSearching ? " so far" : ""}. `}
        {`${counted(matches, "resource")} found in ${counted(states.length, "state")}.`}
      </p>
      {isSearching && <progress aria-label="Searched" max={left === null ? undefined : all} value={searched} />}
      {!page.next && !states.length && (
        <Empty title="No state has such a resource">
          Only states that you may read were searched, as they are now; sensitive values are not compared.
        </Empty>
      )}
      <ul class="found">
        {states.map(({ name, matches: count, resources }) => (
          <li key={name}>
            <StateLink name={name} />
            <ul>
              {resources.map(({ address, deposed }) => (
                <li key={address + deposed}>
                  <code>{address}</code>
                </li>
              ))}
              {count > resources.length && <li>{`and ${counted(count - resources.length, "other")}`}</li>}
            </ul>
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
