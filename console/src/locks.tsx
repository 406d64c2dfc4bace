export const LocksPage = () => <h1>Locks</h1>;
