// What the modules under test take from a browser when they are loaded.

const kept = new Map<string, string>();
Object.assign(globalThis, {
  location: new URL("https://api.example/team/console/#/locks"),
  sessionStorage: {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => kept.set(key, value),
    removeItem: (key: string) => kept.delete(key),
  },
});

export { kept };
