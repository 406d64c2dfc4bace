// Asks for what belongs to a row while the row is in view, a few rows at once.

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const AT_ONCE = 2; // requests: each may read whole states

type Ask = () => Promise<void>;
type Load<T> = (signal: AbortSignal) => Promise<T>;

const waiting = new Set<Ask>();
let asking = 0;

async function askNext(): Promise<void> {
  const [ask] = waiting;
  if (!ask || asking === AT_ONCE) return;
  waiting.delete(ask);
  asking += 1;
  await ask();
  asking -= 1;
  askNext();
}

/** What was loaded, whether that failed, and the element that has to be in view. */
type InView<T> = { data: T | undefined; hasFailed: boolean; place: RefObject<HTMLElement | null> };

/** Loads what belongs to a row once the row is in view, and keeps it; what failed is tried again on another visit. */
export function useInView<T>(kept: Map<string, T>, key: string, load: Load<T>): InView<T> {
  const place = useRef<HTMLElement>(null);
  const [hasFailed, setFailed] = useState(false);
  const [, draw] = useState(0);
  useEffect(() => {
    if (kept.has(key) || !place.current) return;
    const abort = new AbortController();
    let isAsking = false;
    const ask = async () => {
      isAsking = true;
      try {
        kept.set(key, await load(abort.signal));
        draw((turn) => turn + 1);
      } catch {
        if (!abort.signal.aborted) setFailed(true);
      }
      isAsking = false;
    };
    const observer = new IntersectionObserver((entries) => {
      if (!entries.at(-1)?.isIntersecting) waiting.delete(ask);
      else if (!isAsking && !kept.has(key)) waiting.add(ask);
      askNext();
    });
    observer.observe(place.current);
    return () => {
      abort.abort();
      observer.disconnect();
      waiting.delete(ask);
    };
  }, [key]);
  return { data: kept.get(key), hasFailed, place };
}
