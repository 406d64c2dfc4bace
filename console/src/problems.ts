// What the page says when the API did not do what was asked.

import { ApiError } from "./api";

export type Words = { title: string; advice: string };

/** Returns any failure as an `ApiError`. */
export const failure = (error: unknown): ApiError =>
  error instanceof ApiError ? error : new ApiError(0, "fault", String(error));

/** Returns what happened and what to do. The API's own message comes first where it has one. */
export function words({ status, code, message, retryAfter }: ApiError): Words {
  const soon = retryAfter ? `in ${retryAfter} s` : "in a few seconds";
  if (code === "fault" && status === 0) {
    return { title: "The page failed", advice: `This is a fault of the console: ${message}. Reload the page.` };
  }
  switch (status) {
    case 0:
      return { title: "The API is out of reach", advice: `${message} Check your network, then try again.` };
    case 401:
      return { title: "You are signed out", advice: "Sign in again to go on where you were." };
    case 403:
      return { title: "Your role does not allow this", advice: message || "Ask a maintainer for a grant." };
    case 404:
      return { title: "There is no such thing", advice: message || "It may have been deleted meanwhile." };
    case 409:
      return { title: "Somebody was here before you", advice: message || "Look at the state again first." };
    case 423:
      return { title: code === "frozen" ? "The state is frozen" : "The state is locked", advice: message };
    case 429:
      return {
        title: "Too many requests at the moment",
        advice: `The team shares a limit of requests, and it was reached. Try again ${soon}.`,
      };
    case 503:
      return {
        title: "The storage did not answer in time",
        advice: `${message} Nothing is lost. Try again ${soon}.`.trim(),
      };
    case 413:
      return { title: "This is too large to show", advice: message };
    case 400:
      return { title: "The API refused the request", advice: message };
    default:
      return { title: "The service failed", advice: `${message} Try again; the function's log says more.`.trim() };
  }
}
