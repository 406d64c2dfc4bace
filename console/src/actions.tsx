import type { Schemas } from "./api";

type Shared = { name: string; onClose: () => void; onDone: () => void };

export const BreakLock = (_: Shared & { lock: Schemas["Lock"] }) => null;
export const Restore = (_: Shared & { version: Schemas["Version"] }) => null;
export const Freeze = (_: Shared) => null;
export const Unfreeze = (_: Shared & { lock: Schemas["Lock"] }) => null;
