// What is left of a deleted state, on each of its pages.

import type { ComponentChildren } from "preact";
import { get, type Schemas } from "./api";
import { moment } from "./format";
import { type Loaded, useLoaded } from "./load";
import { may, useMe } from "./me";
import { text } from "./trail";
import { Age, Button, By, For } from "./ui";
import type { By as Who } from "./words";

const AROUND = 300_000; // milliseconds by which the clocks of S3 and of the audit trail may differ

type Asked = { name: string; at: string | null; marker: string | undefined; undelete: (marker: string) => void };
/** Who did it, and why. */
export type Deletion = Who & { reason?: string };

/** When a state was deleted, who did it and why, and what brings it back; `children` lead on from there. */
export function Deleted({ name, at, marker, undelete, children }: Asked & { children?: ComponentChildren }) {
  const me = useMe();
  const mayAsk = may(me, "read_activity", name);
  const deletion = useDeletion(name, at).data;
  return (
    <div class="empty">
      <strong>This state is deleted</strong>
      <p class={mayAsk ? "told" : undefined}>
        Deleted {at && <Age at={at} />}
        {deletion && [" by ", <Deleter key="by" of={deletion} />]}
      </p>
      {children && <p>{children}</p>}
      <For action="undelete" name={name} what="To bring it back">
        <Button disabled={!marker} onClick={() => marker && undelete(marker)}>
          Undelete …
        </Button>
      </For>
    </div>
  );
}

/** Loads who deleted a state at a time, and why, for those who may read it. */
export function useDeletion(name: string, at: string | null): Loaded<Deletion | null> {
  const me = useMe();
  return useLoaded(
    async (signal) => (at && may(me, "read_activity", name) ? deletionOf(name, at, signal) : null),
    [me, at],
  );
}

/** Who deleted a state, and why. */
export const Deleter = ({ of }: { of: Deletion }) => (
  <>
    <By of={of} />
    {of.reason && `: ${of.reason}`}
  </>
);

/** Returns who deleted a state at a time, and why; null if the audit trail does not tell. */
export async function deletionOf(name: string, at: string, signal: AbortSignal): Promise<Deletion | null> {
  const [since, until] = [-AROUND, AROUND].map((by) => moment(Date.parse(at) + by));
  const { events } = await get<Schemas["Activity"]>("activity", { state: name, since, until }, signal);
  const event = events.find((event) => text(event, "event") === "state.deleted");
  return (
    (event && {
      principal: text(event, "principal") || null,
      owner: text(event, "owner"),
      reason: text(event, "reason"),
    }) ??
    null
  );
}
