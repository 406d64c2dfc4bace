import type { Query } from "./route";
export const ActivityPage = (_: { query: Query }) => <h1>Activity</h1>;
