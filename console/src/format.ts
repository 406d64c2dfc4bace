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

/** Returns a number of bytes, as `1.2 MB`. */
export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  const power = Math.min(4, Math.floor(Math.log10(count) / 3));
  const value = count / 1000 ** power;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${["", "KB", "MB", "GB", "TB"][power]}`;
}

const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const SHORT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/** Returns a time in the reader's zone, to the minute. */
export const when = (iso: string): string => shown(SHORT, iso);

/** Returns a time in the reader's zone, to the second and with the zone. */
export const exactly = (iso: string): string => shown(EXACT, iso);

/** Returns a number and what it counts, as `2 states`. */
export const counted = (count: number, one: string): string =>
  `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;

function shown(format: Intl.DateTimeFormat, iso: string): string {
  const time = Date.parse(iso);
  return Number.isNaN(time) ? iso : format.format(time);
}
