// The API's time: ages are by the server's clock, whatever the clock of this machine says.

let ahead = 0;
let known = false;

/** Notes the API's time of a response just received. */
export function note(date: string | null): void {
  const time = Date.parse(date ?? "");
  if (Number.isNaN(time)) return;
  known = true;
  if (Math.abs(time - now()) > 1500) ahead = time - Date.now();
}

/** Returns whether a time is over; false as long as the API's time is not known. */
export const isOver = (iso: string): boolean => known && Date.parse(iso) <= now();

/** Returns the API's time, in milliseconds since 1970. */
export const now = (): number => Date.now() + ahead;
