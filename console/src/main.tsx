import { type ComponentChildren, render } from "preact";
import { useEffect, useErrorBoundary, useLayoutEffect, useState } from "preact/hooks";
import { ActivityPage } from "./activity";
import { get } from "./api";
import { now } from "./clock";
import { DiffPage } from "./diff";
import { FindPage } from "./find";
import { HandOver } from "./hand-over";
import { useEvery, useLoaded } from "./load";
import { LocksPage } from "./locks";
import { type Action, type Me, MeContext, may } from "./me";
import { failure } from "./problems";
import { ResourcePage } from "./resource";
import { href, parse, type Route } from "./route";
import { onSession, type Session, session, signOut } from "./session";
import { SignIn } from "./sign-in";
import { ConfigurationPage, StatePage } from "./state";
import { StatesPage } from "./states";
import { Button, Problem } from "./ui";
import { HistoryPage } from "./versions";
import { person } from "./words";

const TITLES = { states: "States", locks: "Locks", activity: "Activity", find: "Find", unknown: "Not found" };
const NAVIGATION = [
  { page: "states" },
  { page: "locks" },
  { page: "activity" },
  { page: "find" },
] as const satisfies readonly Route[];
const NEEDED: Partial<Record<Route["page"], Action>> = { activity: "read_activity", find: "read" };

function App() {
  const [, setTurn] = useState(0);
  useEffect(() => onSession(() => setTurn((turn) => turn + 1)), []);
  useEvery(1, session); // it ends by itself
  const current = session();
  if (!current) return <SignIn />;
  return <SignedIn key={current.token} me={current} until={current.until} />;
}

/** Follows the address. A page begins at its top, and where it was left if the back button leads to it. */
function useRoute(): { route: Route; visit: number; isReturn: boolean } {
  const [place, setPlace] = useState(() => ({ route: parse(location.hash), visit: 0, isReturn: false }));
  // An effect would run after the page is painted, and miss an address that changes before.
  useLayoutEffect(() => {
    history.scrollRestoration = "manual";
    const left = new Map<string, { top: number; link: string | null }>();
    const read = ({ oldURL, newURL }: HashChangeEvent) => {
      left.set(oldURL, { top: scrollY, link: document.activeElement?.getAttribute("href") ?? null });
      const isReturn = history.state === "seen";
      const { top, link } = (isReturn && left.get(newURL)) || { top: 0, link: null };
      history.replaceState("seen", "");
      setPlace(({ visit }) => ({ route: parse(location.hash), visit: visit + 1, isReturn }));
      requestAnimationFrame(() => scrollTo(0, top));
      // The frame after draws the rows that are in view then.
      const focus = () => {
        const found = link && document.querySelector<HTMLElement>(`main a[href="${CSS.escape(link)}"]`);
        ((isFilterNext && filter()) || found || document.getElementById("main"))?.focus({ preventScroll: true });
        isFilterNext = false;
      };
      setTimeout(focus, 50);
    };
    history.replaceState("seen", "");
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  return place;
}

function SignedIn({ me, until }: { me: Session; until: string | null }) {
  const { route, visit, isReturn } = useRoute();
  const { data, error, again } = useLoaded<Me>((signal) => get("whoami", {}, signal), []);
  const [, setTick] = useState(0);
  useEvery(10, () => setTick((tick) => tick + 1)); // ages are drawn anew
  const title = "name" in route ? route.name : TITLES[route.page];
  const place = data?.team ?? "Holdfast";
  useEffect(() => {
    document.title = `${title} · ${place}`;
  }, [title, place]);
  useEffect(() => {
    addEventListener("keydown", toFilter);
    return () => removeEventListener("keydown", toFilter);
  }, []);
  const at = "name" in route ? "states" : route.page;
  const minutes = Math.ceil((Date.parse(until ?? "9999-12-31") - now()) / 60_000);
  const grants = data?.grants ?? [];
  const isOffered = (action?: Action) => !data || !action || may(data, action);
  return (
    <MeContext.Provider value={data ?? null}>
      <Button class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the content
      </Button>
      <header class="bar">
        <a class="brand" href="#/">
          <Anchor /> <span>Holdfast</span>
        </a>
        {data && (
          <span class="team">
            {data.team} <small>{data.account}</small>
          </span>
        )}
        <nav aria-label="Pages">
          {NAVIGATION.filter(({ page }) => isOffered(NEEDED[page])).map((place) => (
            <a key={place.page} href={href(place)} aria-current={at === place.page ? "page" : undefined}>
              {TITLES[place.page]}
            </a>
          ))}
        </nav>
        <div class="who">
          <span title={[me.principal, ...grants.map(({ role, scope }) => `${role}: ${scope.join(", ")}`)].join("\n")}>
            {person(me)} <span class="faint">{[...new Set(grants.map(({ role }) => role))].join(", ")}</span>
          </span>
          {minutes <= 10 && <span class="badge locked">{`ends in ${minutes} min`}</span>}
          <Button onClick={() => signOut()}>Sign out</Button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {error && <Problem error={error} again={again} />}
        <Safe key={visit}>
          <Page route={route} isReturn={isReturn} />
        </Safe>
      </main>
    </MeContext.Provider>
  );
}

/** Keeps the rest of the page working when one page fails. */
function Safe({ children }: { children: ComponentChildren }): ComponentChildren {
  const [error, again] = useErrorBoundary();
  return error ? <Problem error={failure(error)} again={again} /> : children;
}

/** The mark of Holdfast, as `index.html` has it for the tab. */
const Anchor = () => (
  <svg viewBox="0 0 16 16" aria-hidden="true">
    <path d="M8 6v8M3 9c0 3 2 5 5 5s5-2 5-5M5 8h6M8 2a2 2 0 1 0 0 4 2 2 0 0 0 0-4" />
  </svg>
);

const filter = () => document.querySelector<HTMLElement>("main input[type=search]");
let isFilterNext = false; // whether the next page begins with the focus in its filter

/** A slash leads to the filter of the page, or to that of the states, unless somebody types it. */
function toFilter(event: KeyboardEvent): void {
  const { key, ctrlKey, metaKey, altKey, target } = event;
  const isTyped = target instanceof Element && target.closest("input, select, textarea, dialog");
  if (key !== "/" || ctrlKey || metaKey || altKey || isTyped) return;
  event.preventDefault();
  isFilterNext = !filter();
  if (isFilterNext) location.hash = href({ page: "states" });
  else filter()?.focus();
}

/** The page of an address; it is a return if the back button led to it. */
function Page({ route, isReturn }: { route: Route; isReturn: boolean }) {
  if (route.page === "states") return <StatesPage query={route.query ?? {}} />;
  if (route.page === "state") return <StatePage name={route.name} />;
  if (route.page === "configuration") return <ConfigurationPage name={route.name} />;
  if (route.page === "history") return <HistoryPage {...{ isReturn }} name={route.name} />;
  if (route.page === "diff") return <DiffPage {...route} />;
  if (route.page === "resource") return <ResourcePage {...route} />;
  if (route.page === "locks") return <LocksPage />;
  if (route.page === "activity") return <ActivityPage {...route} />;
  if (route.page === "find") return <FindPage />;
  return (
    <>
      <h1>There is no such page</h1>
      <a href="#/">Look at all states</a>
    </>
  );
}

const isHandOver = location.pathname.endsWith("/sign-in.html");
render(isHandOver ? <HandOver /> : <App />, document.getElementById("page") as HTMLElement);
