// What the pages of one state share.

import { may, useMe } from "./me";
import { href } from "./route";
import { Copy, Name, Tick } from "./ui";

type View = "state" | "history" | "activity" | "configuration";

/** The head of each page of a state. Each part of its name leads to the states that begin with it. */
export function Head({ name, page }: { name: string; page: View | "diff" | "resource" }) {
  const me = useMe();
  const above = { diff: "history", resource: "state" }[page as string]; // the tab that leads to it
  const segments = name.split("/");
  const link = (to: View, text: string) => (
    <a href={href({ page: to, name })} aria-current={page === to ? "page" : above === to ? "true" : undefined}>
      {text}
    </a>
  );
  return (
    <>
      <div class="title">
        <h1>
          {segments.slice(0, -1).map((segment, at) => {
            const q = `${segments.slice(0, at + 1).join("/")}/`;
            return (
              <a key={q} href={href({ page: "states", query: { q } })}>
                <Name>{`${segment}/`}</Name>
              </a>
            );
          })}
          <Name>{segments.at(-1) ?? ""}</Name>
        </h1>
        <Copy text={name} what="the name" />
      </div>
      <nav class="views" aria-label="Pages of the state">
        {link("state", "Now")}
        {(above === "history" || page === "history" || may(me, "read_history", name)) && link("history", "History")}
        {(page === "activity" || may(me, "read_activity", name)) && link("activity", "Activity")}
        {link("configuration", "Configuration")}
      </nav>
    </>
  );
}

/** What stands for a value that is not shown: nobody asked for it, or it is sensitive; and how it differs. */
export const Hidden = ({ sensitive, change }: { sensitive: boolean; change?: string }) => (
  <span class="masked">
    ({sensitive ? "sensitive" : "masked"}
    {change && `, ${change}`})
  </span>
);

type Values = { checked: boolean; onChange: (checked: boolean) => void };

export const ShowValues = (props: Values) => <Tick label="Show values that are not marked sensitive" {...props} />;

type Asked = { name: string; address: string; version?: string | undefined };

/** Leads to the attributes of a resource, as they are now or in a version. */
export const ResourceLink = ({ name, address, version }: Asked) => (
  <a href={href({ page: "resource", name, address, version })}>
    <code>
      <Name>{address}</Name>
    </code>
  </a>
);
