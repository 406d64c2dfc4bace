// What the pages of one state share.

import { href } from "./route";
import { Tick } from "./ui";

/** The head of each page of a state. */
export function Head({ name, page }: { name: string; page: "state" | "history" | "diff" }) {
  const link = (to: "state" | "history", text: string) => (
    <a href={href({ page: to, name })} aria-current={page === to ? "page" : undefined}>
      {text}
    </a>
  );
  return (
    <>
      <h1>{name}</h1>
      <nav class="views" aria-label="Pages of the state">
        {link("state", "Now")}
        {link("history", "History")}
      </nav>
    </>
  );
}

export const Hidden = ({ sensitive }: { sensitive: boolean }) => (
  <span class="faint">{sensitive ? "(sensitive)" : "(hidden)"}</span>
);

type Values = { checked: boolean; onChange: (checked: boolean) => void };

export const ShowValues = (props: Values) => (
  <Tick label="Show values, except those that the state marks as sensitive" {...props} />
);
