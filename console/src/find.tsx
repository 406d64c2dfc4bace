export const FindPage = () => <h1>Find</h1>;
