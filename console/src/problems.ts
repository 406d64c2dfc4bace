// What the page says when the API did not do what was asked.

import { ApiError } from "./api";
import { exactly } from "./format";

/** For each status what happened, and what to do. */
const KNOWN: Record<number, [string, string]> = {
  0: ["The API cannot be reached", "Check your network, then try again."],
  400: ["The API refused the request", ""],
  401: ["You are signed out", "Sign in again to continue."],
  403: ["Your token does not allow this", "An operator with AWS credentials can create a token that does."],
  404: ["There is nothing with this name", ""],
  409: ["The state changed in the meantime", "Look at the state, then try again."],
  413: ["This is too large to show", ""],
  423: ["The state is locked or frozen", ""],
  429: ["Too many requests", "The team shares a limit of requests. Try again"],
  503: ["The service did not respond in time", "Try again"],
};

/** Returns the names that the API suggests for one that does not exist. */
export const nearest = (message: string): string[] =>
  /The nearest names are: (.+)\.$/.exec(message)?.[1]?.split(", ") ?? [];

/** What is stored cannot be shown: nobody else changed anything, and another look shows the same. */
const UNREADABLE = /^unreadable_(state|version)$/;
const NOT_A_STATE = ["This cannot be read", ""] as const;

/** Returns any failure as an `ApiError`. */
export const failure = (error: unknown): ApiError =>
  error instanceof ApiError ? error : new ApiError(0, "fault", String(error));

/** Returns what happened and what to do, with the API's own message before it. */
export function words({ status, code, message, retryAfter }: ApiError): { title: string; advice: string } {
  if (code === "fault")
    return { title: "The page failed", advice: `${message}. This is a fault of the console: reload it.` };
  const [title, advice] = UNREADABLE.test(code)
    ? NOT_A_STATE
    : (KNOWN[status] ?? ["The service failed", "Try again; the log says more."]);
  const said = message.replace(/\d{4}-\d\d-\d\dT[\d:]+Z/g, exactly);
  const soon = advice.endsWith("Try again") && (retryAfter ? `in ${retryAfter} s.` : "in a few seconds.");
  return { title, advice: [status === 401 || status === 429 ? "" : said, advice, soon].filter(Boolean).join(" ") };
}
