// The console's pages have addresses such as `#/states/network/prod/-/history`. No segment of a name is `-`.

export type Route =
  | { page: "states"; query?: Query }
  | { page: "state"; name: string }
  | { page: "history"; name: string }
  | { page: "diff"; name: string; from: string; to: string }
  | { page: "locks" }
  | { page: "activity"; query?: Query }
  | { page: "find" }
  | { page: "unknown" };
export type Query = Record<string, string | undefined>;

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*(\/[A-Za-z0-9][A-Za-z0-9._-]*){0,7}$/;

/** Returns the page of an address's part behind `#`, which may be empty. */
export function parse(hash: string): Route {
  const [path = "", asked = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const query = Object.fromEntries(new URLSearchParams(asked));
  const segments = path.split("/").map(decoded);
  if (path === "" || path === "states") return { page: "states", query };
  if (path === "locks" || path === "find") return { page: path };
  if (path === "activity") return { page: "activity", query };
  const end = segments.indexOf("-");
  const name = segments.slice(1, end < 0 ? undefined : end).join("/");
  const [view, from, to, ...more] = end < 0 ? [] : segments.slice(end + 1);
  if (segments[0] !== "states" || name.length > 200 || !NAME.test(name) || more.length) return { page: "unknown" };
  if (end < 0) return { page: "state", name };
  if (view === "history" && from === undefined) return { page: "history", name };
  if (view === "diff" && from && to) return { page: "diff", name, from, to };
  return { page: "unknown" };
}

/** Returns the address of a page, beginning with `#`. */
export function href(route: Route): string {
  switch (route.page) {
    case "states":
      return `#/${queryOf(route.query)}`;
    case "state":
      return `#/states/${encoded(route.name)}`;
    case "history":
      return `#/states/${encoded(route.name)}/-/history`;
    case "diff":
      return `#/states/${encoded(route.name)}/-/diff/${[route.from, route.to].map(encodeURIComponent).join("/")}`;
    case "activity":
      return `#/activity${queryOf(route.query)}`;
    case "unknown":
      return "#/";
    default:
      return `#/${route.page}`;
  }
}

const encoded = (name: string): string => name.split("/").map(encodeURIComponent).join("/");

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return "";
  }
}

function queryOf(query: Query = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return given.length ? `?${new URLSearchParams(given)}` : "";
}
