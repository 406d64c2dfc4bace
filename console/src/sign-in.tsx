// Signing in: a token is checked with the API before it is used.

import { useState } from "preact/hooks";
import { type ApiError, type Schemas, whoIs } from "./api";
import { failure, words } from "./problems";
import { type Session, signIn, tokenIn, whyEnded } from "./session";

/** Returns the session of a token that the API accepts, which ends no later than `until`; raises `ApiError`. */
export async function checked(token: string, until: string | null = null): Promise<Session> {
  const me: Schemas["Principal"] = await whoIs(token);
  const ends = [me.expires, until].filter((end): end is string => end !== null && !Number.isNaN(Date.parse(end)));
  ends.sort((a, b) => Date.parse(a) - Date.parse(b));
  return { token, principal: me.principal, until: ends[0] ?? null, owner: me.owner };
}

/** Returns why a token was refused, and what to do. */
export function refusal(error: ApiError): string {
  if (error.status === 401 || error.status === 403) {
    return "This API does not accept the token. It may be mistyped, expired, revoked or of another team.";
  }
  const { title, advice } = words(error);
  return `${title}. ${advice}`;
}

/** Whether the API is one of several at this host, as on a local AWS. */
const isShared = new URL("..", location.href).pathname !== "/";

/** The form that takes a pasted token. */
export function SignIn() {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const field = new FormData(event.currentTarget as HTMLFormElement).get("token");
    const token = tokenIn(String(field));
    if (!token) {
      setProblem("This is no token. It is the token's ID and its secret, joined by a dot.");
      return;
    }
    setBusy(true);
    setProblem("");
    try {
      signIn(await checked(token));
    } catch (error) {
      setProblem(refusal(failure(error)));
      setBusy(false);
    }
  };
  const ended = whyEnded();
  return (
    <main id="main" class="sign-in">
      <h1>Sign in to Holdfast</h1>
      {ended && (
        <p class="notice" role="alert">
          {ended}
        </p>
      )}
      <p>
        On your own machine, <code>holdfast console</code> signs you in without a token.
      </p>
      <form onSubmit={submit}>
        <label for="token">Token</label>
        <input
          id="token"
          name="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          required
          aria-describedby="token-help token-problem"
        />
        <p id="token-help" class="faint">
          <code>&lt;id&gt;.&lt;secret&gt;</code>, or the lines that <code>holdfast token create</code> printed.
        </p>
        <p id="token-problem" class="wrong" role="alert">
          {problem}
        </p>
        <button type="submit" class="main" disabled={busy}>
          {busy ? "Checking …" : "Sign in"}
        </button>
      </form>
      <p class="faint">
        The token stays in this tab. Browsers may keep it on disk to restore the tab, and a copied tab has a copy: sign
        out when you are done.
        {isShared && ` Other APIs on ${location.host} share this storage.`}
      </p>
    </main>
  );
}
