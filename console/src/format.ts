// Sizes, times and ages as people read them.

const UNITS = { d: 86_400, h: 3_600, min: 60 };

/** Returns how long ago a time is, as `5 min`; `now` is in milliseconds since 1970. */
export function ages(iso: string, now: number): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(iso)) / 1000));
  for (const [unit, length] of Object.entries(UNITS)) {
    if (seconds >= length) return `${Math.floor(seconds / length)} ${unit}`;
  }
  return `${seconds} s`;
}

/** Returns a number of bytes as the command prints it, such as `1.2 MB`. */
export function bytes(count: number): string {
  const power = count < 1000 ? 0 : count < 1e6 ? 1 : count < 1e9 ? 2 : 3;
  return `${(count / 1000 ** power).toFixed(1).replace(".0", "")} ${["B", "KB", "MB", "GB"][power]}`;
}

const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

/** Returns a time in the reader's zone, to the second and with the zone. */
export function exactly(iso: string): string {
  const time = Date.parse(iso);
  return Number.isNaN(time) ? iso : EXACT.format(time);
}

/** Returns a time as `exactly` does, and in a second line as the command prints it. */
export function everywhere(iso: string): string {
  const time = Date.parse(iso);
  return Number.isNaN(time) ? iso : `${EXACT.format(time)}\n${moment(time).replace("T", " ").replace("Z", " UTC")}`;
}

/** Returns a time in milliseconds since 1970 in the API's form, to the second. */
export const moment = (time: number): string => new Date(time).toISOString().replace(/[.].*Z/, "Z");

/** Returns a number and what it counts, as `2 states`. */
export const counted = (count: number, one: string): string =>
  `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;
