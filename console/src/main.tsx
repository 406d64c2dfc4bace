import { type ComponentChildren, render } from "preact";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import { ActivityPage } from "./activity";
import { get } from "./api";
import { now } from "./clock";
import { FindPage } from "./find";
import { LocksPage } from "./locks";
import { audits, type Me, MeContext, reads } from "./me";
import { failure } from "./problems";
import { href, parse, type Route } from "./route";
import { onSession, session, signOut } from "./session";
import { SignIn } from "./sign-in";
import { StatePage } from "./state";
import { StatesPage } from "./states";
import { Problem, useEvery, useLoaded, useTick } from "./ui";
import { DiffPage, HistoryPage } from "./versions";

const TITLES = { states: "States", locks: "Locks", activity: "Activity", find: "Find", unknown: "Not found" };
const NAVIGATION = ["states", "locks", "activity", "find"] as const;
const OFFERED = { states: () => true, locks: () => true, activity: audits, find: (me: Me) => reads(me) };

function App() {
  const [, setTurn] = useState(0);
  useEffect(() => onSession(() => setTurn((turn) => turn + 1)), []);
  useEvery(1, session); // it ends by itself
  const current = session();
  return current ? (
    <SignedIn key={current.token} principal={current.owner ?? current.principal} until={current.until} />
  ) : (
    <SignIn />
  );
}

/** Follows the address. A page begins at its top, and where it was left if the back button leads to it. */
function useRoute(): { route: Route; visit: number } {
  const [place, setPlace] = useState(() => ({ route: parse(location.hash), visit: 0 }));
  useEffect(() => {
    history.scrollRestoration = "manual";
    const places = new Map<string, { top: number; link: string | null }>();
    const read = ({ oldURL, newURL }: HashChangeEvent) => {
      places.set(oldURL, { top: scrollY, link: document.activeElement?.getAttribute("href") ?? null });
      const place = history.state === "seen" ? places.get(newURL) : undefined;
      history.replaceState("seen", "");
      setPlace(({ visit }) => ({ route: parse(location.hash), visit: visit + 1 }));
      requestAnimationFrame(() => scrollTo(0, place?.top ?? 0));
      // The frame after draws the rows that are in view then.
      setTimeout(() => {
        const links = place?.link ? document.querySelectorAll<HTMLElement>("main a") : [];
        const link = [...links].find((one) => one.getAttribute("href") === place?.link);
        (link ?? document.getElementById("main"))?.focus({ preventScroll: true });
      }, 50);
    };
    history.replaceState("seen", "");
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  return place;
}

function SignedIn({ principal, until }: { principal: string; until: string | null }) {
  const { route, visit } = useRoute();
  const me = useLoaded<Me>((signal) => get("whoami", {}, signal), []);
  const title = "name" in route ? route.name : TITLES[route.page];
  useEffect(() => {
    document.title = `${title} · Holdfast`;
  }, [title]);
  useTick(); // also for all ages on the page
  const minutes = Math.ceil((Date.parse(until ?? "9999-12-31") - now()) / 60_000);
  const roles = [...new Set(me.data?.grants.map((grant) => grant.role))].join(", ");
  return (
    <MeContext.Provider value={me.data ?? null}>
      {/* biome-ignore lint/a11y/useValidAnchor: it is a link to a place of this page, whose hash is the route */}
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <header class="bar">
        <a class="brand" href="#/">
          Holdfast
        </a>
        <nav aria-label="Pages">
          {NAVIGATION.filter((page) => !me.data || OFFERED[page](me.data)).map((page) => (
            <a key={page} href={href({ page })} aria-current={at(route) === page ? "page" : undefined}>
              {TITLES[page]}
            </a>
          ))}
        </nav>
        <div class="who">
          <span title={me.data?.grants.map((grant) => `${grant.role}: ${grant.scope.join(", ")}`).join("\n")}>
            {principal} <span class="faint">{roles}</span>
          </span>
          {minutes <= 10 && <span class="badge locked">ends in {minutes} min</span>}
          <button type="button" onClick={() => signOut()}>
            Sign out
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {me.error && <Problem error={me.error} again={me.again} />}
        <Safe key={visit}>
          <Page route={route} />
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

function skip(event: MouseEvent) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

const at = (route: Route) => ("name" in route ? "states" : route.page);

function Page({ route }: { route: Route }) {
  switch (route.page) {
    case "states":
      return <StatesPage query={route.query ?? {}} />;
    case "state":
      return <StatePage name={route.name} />;
    case "history":
      return <HistoryPage name={route.name} />;
    case "diff":
      return <DiffPage name={route.name} from={route.from} to={route.to} />;
    case "locks":
      return <LocksPage />;
    case "activity":
      return <ActivityPage query={route.query ?? {}} />;
    case "find":
      return <FindPage />;
    case "unknown":
      return (
        <>
          <h1>There is no such page</h1>
          <p>
            The address may be incomplete. <a href="#/">Look at the states</a>.
          </p>
        </>
      );
  }
}

render(<App />, document.getElementById("page") as HTMLElement);
