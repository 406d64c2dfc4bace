// Finds the state of a resource. What is looked for is in no address, and so in no history of the browser.

import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, type Schemas, send } from "./api";
import { bytes, counted } from "./format";
import { reads, useMe } from "./me";
import { failure } from "./problems";
import { href } from "./route";
import { Empty, Problem } from "./ui";

type Page = Schemas["FoundPage"];
type Search = { wanted: Schemas["Find"]; page: Page; step: "searching" | "done" | "stopped"; error?: ApiError };

const PAUSE = 1000; // milliseconds from one request to the next: the API accepts one a second
const NOTHING: Page = { states: [], skipped: [], searched: 0, left: null, next: null };
const KINDS = { address: "A part of its address", type: "Its whole type", id: "Its whole ID, ARN or self link" };
const WHY = { too_large: "too large", encrypted: "encrypted by its client", unreadable: "not a state document" };
const STEPS = { searching: "searched so far", done: "searched", stopped: "searched before the search stopped" };

export function FindPage() {
  const me = useMe();
  const [kind, setKind] = useState<keyof typeof KINDS>("address");
  const [search, setSearch] = useState<Search>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  /** Asks for page after page, never for two at once, and goes on after what was found before. */
  const run = async (wanted: Schemas["Find"], from: Page) => {
    running.current?.abort();
    const abort = new AbortController();
    running.current = abort;
    let page = from;
    setSearch({ wanted, page, step: "searching" });
    try {
      do {
        const begun = Date.now();
        const cursor = page.next ? { cursor: page.next } : {};
        page = joined(page, await send<Page>("POST", "find", { ...wanted, ...cursor }, abort.signal));
        setSearch({ wanted, page, step: page.next ? "searching" : "done" });
        await new Promise((resolve) => setTimeout(resolve, begun + PAUSE - Date.now()));
      } while (page.next && !abort.signal.aborted);
    } catch (error) {
      if (!abort.signal.aborted) setSearch({ wanted, page, step: "stopped", error: failure(error) });
    }
  };
  const start = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const prefix = String(form.get("prefix")).trim();
    run({ [kind]: String(form.get("word")).trim(), ...(prefix ? { prefix } : {}) }, NOTHING);
  };
  const stop = () => {
    running.current?.abort();
    setSearch((now) => now && { ...now, step: "stopped" });
  };
  const field = (name: string, label: string, pattern?: string) => (
    <>
      <label for={name}>{label}</label>
      <input {...{ name, pattern }} id={name} required={!!pattern} maxLength={1000} autocomplete="off" />
    </>
  );
  return (
    <>
      <h1>Find a resource</h1>
      {me && !reads(me) && <p class="notice">Your role searches no state: it takes reader, writer or maintainer.</p>}
      <form class="form" onSubmit={start}>
        <label for="kind">Find by</label>
        <select id="kind" value={kind} onChange={(event) => setKind(event.currentTarget.value as keyof typeof KINDS)}>
          {Object.entries(KINDS).map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
        {field("word", KINDS[kind], ".*\\S.*")}
        {field("prefix", "Only in states whose names begin with (optional)")}
        <p class="actions">
          <button type="submit" class="main">
            Find
          </button>
          {search?.step === "searching" && (
            <button type="button" onClick={stop}>
              Stop
            </button>
          )}
        </p>
      </form>
      {search?.error && <Problem error={search.error} again={() => run(search.wanted, search.page)} />}
      {search && <Found {...search} />}
    </>
  );
}

function joined(before: Page, page: Page): Page {
  const { states, skipped, searched } = before;
  return {
    ...page,
    states: [...states, ...page.states],
    skipped: [...skipped, ...page.skipped],
    searched: searched + page.searched,
  };
}

function Found({ page, step }: Search) {
  const { states, skipped, searched, left } = page;
  const all = searched + (left ?? 0);
  const matches = states.reduce((sum, one) => sum + one.matches, 0);
  return (
    <section aria-label="What was found">
      <p role="status">
        {left !== null && `${searched.toLocaleString("en")} of `}
        {counted(all, "state")} {STEPS[step]}. {counted(matches, "resource")} found in {counted(states.length, "state")}
        .
      </p>
      {step === "searching" && left !== null && <progress aria-label="Searched" max={all} value={searched} />}
      {step === "done" && !states.length && (
        <Empty title="No state has such a resource">
          <p>Only states that you may read were searched, as they are now; sensitive values are not compared.</p>
        </Empty>
      )}
      <ul class="found">
        {states.map(({ name, matches: count, resources }) => (
          <li key={name}>
            <a href={href({ page: "state", name })}>{name}</a>
            <ul>
              {resources.map(({ address, deposed }) => (
                <li key={address + deposed}>
                  <code>{address}</code>
                </li>
              ))}
              {count > resources.length && <li>and {counted(count - resources.length, "other")}</li>}
            </ul>
          </li>
        ))}
      </ul>
      {skipped.length > 0 && (
        <details open>
          <summary>{counted(skipped.length, "state")} not searched</summary>
          <ul>
            {skipped.map(({ name, why, size }) => (
              <li key={name}>
                <a href={href({ page: "state", name })}>{name}</a>: {WHY[why]} ({bytes(size)})
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}
