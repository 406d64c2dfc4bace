// The API's time: ages are by the server's clock, whatever the clock of this machine says.

let ahead = 0;

/** Notes the API's time of a response just received. */
export function note(date: string | null): void {
  const time = Date.parse(date ?? "");
  if (!Number.isNaN(time) && Math.abs(time - now()) > 1500) ahead = time - Date.now();
}

/** Returns the API's time, in milliseconds since 1970. */
export const now = (): number => Date.now() + ahead;
