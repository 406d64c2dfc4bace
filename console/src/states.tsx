import type { Query } from "./route";
export const StatesPage = (_: { query: Query }) => <h1>States</h1>;
