export const StatePage = ({ name }: { name: string }) => <h1>{name}</h1>;
export const HistoryPage = ({ name }: { name: string }) => <h1>{name}</h1>;
export const DiffPage = ({ name }: { name: string; from: string; to: string }) => <h1>{name}</h1>;
