// What is left of a deleted state, on each of its pages.

import type { ComponentChildren } from "preact";
import { get, type Schemas } from "./api";
import { type Loaded, useLoaded } from "./load";
import { may, useMe } from "./me";
import { type Event, text } from "./trail";
import { Age, Button, By, For } from "./ui";

const AROUND = 300_000; // milliseconds by which the clocks of S3 and of the audit trail may differ

type Deletion = { name: string; at: string | null; marker: string | undefined; undelete: (marker: string) => void };

/** When a state was deleted, who did it and why, and what brings it back; `children` lead on from there. */
export function Deleted({ name, at, marker, undelete, children }: Deletion & { children?: ComponentChildren }) {
  const me = useMe();
  const mayUndelete = may(me, "undelete", name);
  const deletion = useDeletion(name, at).data;
  const by = deletion && { principal: text(deletion, "principal") || null, owner: text(deletion, "owner") };
  const reason = deletion && text(deletion, "reason");
  return (
    <div class="empty">
      <strong>This state is deleted</strong>
      <p>
        Deleted {at && <Age at={at} />}
        {by && [" by ", <By key="by" of={by} />]}
        {reason && `: ${reason}`}
      </p>
      {children && <p>{children}</p>}
      {marker && mayUndelete && <Button onClick={() => undelete(marker)}>Undelete …</Button>}
      {me && !mayUndelete && (
        <For action="undelete" name={name} what="To bring it back">
          {null}
        </For>
      )}
    </div>
  );
}

/** Loads the event of a deletion at a time, for those who may read it. */
export function useDeletion(name: string, at: string | null): Loaded<Event | undefined> {
  const me = useMe();
  return useLoaded<Event | undefined>(
    async (signal) => (at && may(me, "read_activity", name) ? deletionOf(name, at, signal) : undefined),
    [me, at],
  );
}

async function deletionOf(name: string, at: string, signal: AbortSignal): Promise<Event | undefined> {
  const [since, until] = [-AROUND, AROUND].map((by) =>
    new Date(Date.parse(at) + by).toISOString().replace(/\.\d+/, ""),
  );
  const { events } = await get<Schemas["Activity"]>("activity", { state: name, since, until }, signal);
  return events.find((event) => text(event, "event") === "state.deleted");
}
