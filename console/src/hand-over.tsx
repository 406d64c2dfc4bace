// Takes over the session that `holdfast console` hands out: one message of the page that opened this one. That page is
// a file, whose origin anybody can have; so this one asks whose session it is, the API and the person, before it uses it.

import { useEffect, useState } from "preact/hooks";
import { exactly } from "./format";
import { type Session, session, signIn } from "./session";
import { checked, refusal } from "./sign-in";
import { Button, By } from "./ui";
import { ended, person, short } from "./words";

const index = `./index.html${location.hash}`; // the console's page that the command asks for
const PATIENCE = 30_000; // the page that opened this one is removed after this time

type Offered = { token: string; principal: string; until: string | null };

/** Returns the session in a message; null if it is anything else. */
function offered(data: unknown): Offered | null {
  const { holdfast, token, principal, until } = Object(data) as Record<string, unknown>;
  if (holdfast !== "session" || typeof token !== "string" || typeof principal !== "string") return null;
  return { token, principal, until: typeof until === "string" ? until : null };
}

function Offer() {
  const [offer, setOffer] = useState<Session>();
  const [problem, setProblem] = useState("");
  const [known] = useState(session);
  const [opener] = useState(() => window.opener as Window | null);
  useEffect(() => {
    if (known || !opener) return;
    const waiting = new AbortController();
    const take = (event: MessageEvent) => {
      const found = event.source === opener ? offered(event.data) : null;
      if (!found) return;
      waiting.abort();
      check(found);
      opener.postMessage({ holdfast: "taken" }, "*"); // now it may close: the message was there before
    };
    const giveUp = () => {
      if (!waiting.signal.aborted) setProblem("No session arrived. Run holdfast console again.");
      waiting.abort();
    };
    setTimeout(giveUp, PATIENCE);
    addEventListener("message", take, waiting);
    opener.postMessage({ holdfast: "ready" }, "*"); // it holds no secret
    return () => waiting.abort();
  }, [known, opener]);

  /** Asks the API whose session it is: the page that opened this one may say anything. */
  const check = async ({ token, principal, until }: Offered) => {
    try {
      const started = await checked(token, until);
      if (started.principal === principal) setOffer(started);
      else
        setProblem(`${ended(`This session is not of ${short(principal)} but of ${person(started)}`)} It is not used.`);
    } catch (error) {
      setProblem(`${refusal(error)} Run holdfast console again.`);
    }
  };
  const accept = (started: Session) => {
    signIn(started);
    location.replace(index); // the address without it needs a route that AWS does not document
  };
  if (known || !opener || problem) {
    const isKnown = known && `${ended(`You are signed in as ${person(known)}`)} Sign out first.`;
    const isAlone = "Run holdfast console in a terminal.";
    return (
      <>
        <p role="alert">{isKnown ?? (problem || isAlone)}</p>
        <a href={index}>{known ? "Open the console" : "Sign in with a token"}</a>
      </>
    );
  }
  if (!offer) return <p role="status">Waiting for the page that holdfast console opened …</p>;
  return (
    <>
      <p>
        Sign in as{" "}
        <strong>
          <By of={offer} />
        </strong>
        ?
      </p>
      {offer.until && <p class="faint">{`It ends on ${exactly(offer.until)}.`}</p>}
      <p>Continue only if you just ran holdfast console yourself.</p>
      <p class="actions">
        <Button class="main" onClick={() => accept(offer)}>
          Sign in
        </Button>
        <Button onClick={() => setProblem("You did not sign in.")}>Cancel</Button>
      </p>
    </>
  );
}

/** The page `sign-in.html`. It is not the console's index, because its headers let it see who opened it. */
export const HandOver = () => (
  <main id="main" class="sign-in">
    <h1>Sign in to Holdfast</h1>
    <Offer />
  </main>
);
