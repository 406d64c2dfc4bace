// Sizes, times and ages as people read them.

const UNITS = { d: 86_400, h: 3_600, min: 60 };

/** Returns how long ago or ahead a time is, as `5 min`; `now` is in milliseconds since 1970. */
export function ages(iso: string, now: number): string {
  const seconds = Math.round(Math.abs(now - Date.parse(iso)) / 1000);
  for (const [unit, length] of Object.entries(UNITS)) {
    if (seconds >= length) return `${Math.floor(seconds / length)} ${unit}`;
  }
  return `${seconds} s`;
}

/** Returns the same as `5 min ago`, or of an end to come as `in 5 min`. A clock that is a little ahead is no such end. */
export const ago = (iso: string, now: number): string =>
  Date.parse(iso) > now + 60_000 ? `in ${ages(iso, now)}` : `${ages(iso, now)} ago`;

/** Returns a number of bytes as the command prints it, such as `1.2 MB`. */
export function bytes(count: number): string {
  const power = count < 1000 ? 0 : count < 1e6 ? 1 : count < 1e9 ? 2 : 3;
  return `${(count / 1000 ** power).toFixed(1).replace(".0", "")}\u00a0${["B", "KB", "MB", "GB"][power]}`;
}

const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

/** Returns a time to the second in the reader's zone and, in a second line where lines count, as the command prints it. */
export function exactly(iso: string): string {
  const time = Date.parse(iso);
  return Number.isNaN(time) ? iso : `${EXACT.format(time)}\n(${moment(time).replace("T", " ").replace("Z", " UTC)")}`;
}

/** Returns a time in milliseconds since 1970 in the API's form, to the second. */
export const moment = (time: number): string => new Date(time).toISOString().replace(/[.].*Z/, "Z");

/** Returns a number and what it counts, as `2 states`. */
export const counted = (count: number, one: string): string =>
  `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;
