// The console's pages have addresses such as `#/states/network/prod/-/history`. No segment of a name is `-`.

export type Route =
  | { page: "states" | "activity"; query?: Query }
  | { page: "activity"; name: string; query?: Query }
  | { page: "state" | "history" | "configuration"; name: string }
  | { page: "diff"; name: string; from: string; to: string }
  | { page: "resource"; name: string; address: string; version?: string | undefined }
  | { page: "locks" | "find" | "unknown" };
export type Query = Record<string, string | undefined>;

const NAME = /^(?=.{1,200}$)[A-Za-z0-9][A-Za-z0-9._-]*(\/[A-Za-z0-9][A-Za-z0-9._-]*){0,7}$/;

/** Returns the page of an address's part behind `#`, which may be empty. */
export function parse(hash: string): Route {
  const [path = "", asked = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  if (path === "" || path === "states" || path === "activity")
    return { page: path || "states", query: Object.fromEntries(new URLSearchParams(asked)) };
  if (path === "locks" || path === "find") return { page: path };
  const [first, ...segments] = path.split("/").map(decoded);
  const end = segments.indexOf("-");
  const name = segments.slice(0, end < 0 ? undefined : end).join("/");
  const [view, from, to, ...more] = end < 0 ? ["state"] : segments.slice(end + 1);
  if (first !== "states" || !NAME.test(name) || more.length) return { page: "unknown" };
  if (view === "state" && end < 0) return { page: view, name };
  if (view === "activity" && from === undefined)
    return { page: view, name, query: Object.fromEntries(new URLSearchParams(asked)) };
  if ((view === "history" || view === "configuration") && from === undefined) return { page: view, name };
  if (view === "resource" && from) return { page: view, name, address: from, ...(to && { version: to }) };
  return view === "diff" && from && to ? { page: view, name, from, to } : { page: "unknown" };
}

/** Returns the address of a page, beginning with `#`. */
export function href(route: Route): string {
  if (!("name" in route)) {
    const path = route.page === "states" || route.page === "unknown" ? "#/" : `#/${route.page}`;
    return path + ("query" in route ? queryOf(route.query) : "");
  }
  const state = `#/states/${route.name}`; // a name has no letter that must be encoded
  const at = (view: string, ...parts: string[]) => [state, "-", view, ...parts.map(encodeURIComponent)].join("/");
  if (route.page === "diff") return at("diff", route.from, route.to);
  if (route.page === "resource") return at("resource", route.address, ...(route.version ? [route.version] : []));
  if (route.page === "activity") return at("activity") + queryOf(route.query);
  return route.page === "state" ? state : at(route.page);
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return "";
  }
}

/** Returns a query with its question mark, without what is empty; empty if nothing is asked. */
export function queryOf(query: Query = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return given.length ? `?${new URLSearchParams(given)}` : "";
}
