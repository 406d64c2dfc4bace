// Signing in: a token is checked with the API before it is used.

import { useState } from "preact/hooks";
import { whoIs } from "./api";
import { failure, words } from "./problems";
import { API, type Session, signIn, tokenIn, whyEnded } from "./session";
import { entered, Field, Submit } from "./ui";

/** Returns the session of a token that the API accepts, which ends no later than `until`; raises `ApiError`. */
export async function checked(token: string, until: string | null = null): Promise<Session> {
  const { principal, owner, expires } = await whoIs(token);
  const ends = [expires, until].filter((end): end is string => !Number.isNaN(Date.parse(end ?? "")));
  ends.sort((a, b) => Date.parse(a) - Date.parse(b));
  return { token, principal, until: ends[0] ?? null, owner };
}

/** Returns why a token was refused, and what to do. */
export function refusal(thrown: unknown): string {
  const error = failure(thrown);
  if (error.status === 401 || error.status === 403)
    return "This API does not accept the token. It may be mistyped, expired, revoked or of another team.";
  const { title, advice } = words(error);
  return `${title}. ${advice}`;
}

/** The form that takes a pasted token. */
export function SignIn() {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    const token = tokenIn(entered(event).token ?? "");
    setProblem(token ? "" : "This is not a token. A token is its ID and secret, joined by a dot.");
    if (!token) return;
    setBusy(true);
    try {
      signIn(await checked(token));
    } catch (error) {
      setProblem(refusal(error));
      setBusy(false);
    }
  };
  const hint = "<id>.<secret>, or the lines that holdfast token create printed.";
  return (
    <main id="main" class="sign-in">
      <h1>Sign in to Holdfast</h1>
      {whyEnded() && (
        <p class="notice" role="alert">
          {whyEnded()}
        </p>
      )}
      <p>
        On your own machine, <code>holdfast console</code> signs you in without a token.
      </p>
      <form class="form" onSubmit={submit}>
        <Field label="Token" name="token" type="password" required hint={hint} />
        <p class="wrong" role="alert">
          {problem}
        </p>
        <Submit disabled={busy}>{busy ? "Checking …" : "Sign in"}</Submit>
      </form>
      <p class="faint">
        The token stays in this tab. A browser may keep it on disk, and a duplicated tab has it too. Sign out when you
        are done.
        {API !== "/" && ` Other APIs on ${location.host} can read it.`}
      </p>
    </main>
  );
}
