// What all pages are made of.

import type { ComponentChildren, ComponentProps } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "./api";
import { now } from "./clock";
import { ago, bytes, exactly } from "./format";
import type { Loaded } from "./load";
import { type Action, may, rolesFor, useMe } from "./me";
import { nearest, words } from "./problems";
import { href } from "./route";
import { identity, person, type By as Who } from "./words";

/** What was loaded. Before that, that it is loading; a failure stands above what was read before it, if that exists. */
export function Shown<T>(props: { of: Loaded<T>; what: string; show: (data: T) => ComponentChildren }) {
  const { error, again, loading, hasMore } = props.of;
  const data = error?.status === 404 ? undefined : props.of.data;
  return (
    <>
      {error && <Problem {...{ error, again }} note={data && "The data below may be out of date."} />}
      {data && props.show(data)}
      {!data && loading && <Loading what={props.what} />}
      {hasMore && <Button onClick={again}>{loading ? "Loading …" : `Show more ${props.what}`}</Button>}
    </>
  );
}

/** A failure, in words, with a button that tries again. */
export function Problem({ error, again, note }: { error: ApiError; again: () => void; note?: string }) {
  const { title, advice } = words(error);
  if (error.code === "no_state") return <NoState message={advice} />;
  return (
    <div class="problem" role="alert">
      <strong>{title}</strong>
      <p>{advice}</p>
      {note && <p>{note}</p>}
      <Button onClick={again}>Try again</Button>
    </div>
  );
}

/** That a state does not exist, with those of similar names. The style sheet hides the pages of such a state. */
function NoState({ message }: { message: string }) {
  const names = nearest(message);
  return (
    <div class="empty unknown" role="status">
      <strong>{message.replace(/ The nearest.*/, "")}</strong>
      {names.length > 0 && (
        <>
          <p>Did you mean one of these?</p>
          <ul>
            {names.map((name) => (
              <li key={name}>
                <StateLink name={name} />
              </li>
            ))}
          </ul>
        </>
      )}
      <p>
        <a href="#/">Look at all states</a>
      </p>
    </div>
  );
}

/** What stands where nothing is: what that means and what to do next. */
export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="empty">
    <strong>{title}</strong>
    {children && <p>{children}</p>}
  </div>
);

export const Loading = ({ what }: { what: string }) => <Status>{`Loading ${what} …`}</Status>;

/** What screen readers read out when it changes. */
export const Status = ({ children }: { children: ComponentChildren }) => (
  <p role="status" class="faint">
    {children}
  </p>
);

/** Where a name may go on in the next line: behind a separator, except before a star or in a host's name; before a key. */
const ENDS = /(?<=[/\-_\] ]|^[^@]*\.)(?!\*)|(?=\[)/;
const LONGEST = 24; // letters of a part that stays whole
const WHOLE = /^\[?"?\w*"?\]?[/\-_. ]?$/; // no browser breaks these

/** A text that goes on in the next line where one of its parts ends. A part too long for a column breaks anywhere. */
export const Name = ({ children }: { children: string }) => (
  <span class="name-of">
    {children
      .split(ENDS)
      .map((part, at) => [
        at > 0 && <wbr />,
        part.length > LONGEST ? (
          <span class="long">{part}</span>
        ) : WHOLE.test(part) ? (
          part
        ) : (
          <span class="whole">{part}</span>
        ),
      ])}
  </span>
);

/**
 * How long ago something was; the exact time on hover, for screen readers, and in its place after a click. A sign that
 * follows it, such as a full stop, is given as `end`: it stays on the line.
 */
export function Age({ at, inTable, end }: { at: string; inTable?: boolean; end?: string }) {
  const [isExact, setExact] = useState(false);
  const [exact, age] = [exactly(at), ago(at, now())];
  const button = (
    <Button
      class={isExact ? "age exact" : "age"}
      title={exact}
      aria-label={`${age}, ${exact}`}
      tabIndex={inTable ? -1 : undefined}
      onClick={() => setExact(!isExact)}>
      <time dateTime={at}>{isExact ? exact : age}</time>
    </Button>
  );
  if (!end) return button;
  return (
    <span class="whole">
      {button}
      {end}
    </span>
  );
}

export const Size = ({ bytes: count }: { bytes: number | null }) =>
  count === null ? <span class="faint">–</span> : <span title={`${count} bytes`}>{bytes(count)}</span>;

/** Who did something, by name; all that is known of them on hover. */
export const By = ({ of }: { of: Who }) => (
  <span class="person" title={identity(of)}>
    <Name>{person(of)}</Name>
  </span>
);

/** Leads to a state; its text is the name unless it has another. */
export const StateLink = ({ name, children }: { name: string; children?: ComponentChildren }) => (
  <a href={href({ page: "state", name })} aria-label={children ? name : undefined}>
    {children ?? <Name>{name}</Name>}
  </a>
);

/** Lines of a configuration. */
// biome-ignore lint/a11y/noNoninteractiveTabindex: long lines scroll, so the keyboard must reach them (WCAG 2.1.1)
export const Block = ({ children }: { children: string }) => <pre tabIndex={0}>{children}</pre>;

/** A small button that copies a text; where the browser refuses that, it shows the text to be copied by hand. */
export function Copy({ text, what, children }: { text: string; what: string; children?: string }) {
  const [came, setCame] = useState<"copied" | "refused">();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCame("copied");
    } catch {
      setCame("refused");
    }
  };
  useEffect(() => {
    const timer = came === "copied" && setTimeout(() => setCame(undefined), 2000);
    return () => clearTimeout(timer || undefined);
  }, [came]);
  return (
    <>
      <Button class={children ? undefined : "copy"} title={`Copy ${what}`} aria-label={`Copy ${what}`} onClick={copy}>
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <path d={came === "copied" ? "m3 8.5 3.5 3.5L13 5" : "M5.5 5.5h7v8h-7zM10 5.5v-3H3v8h2.5"} />
        </svg>
        {children}
      </Button>
      <span class="unseen" role="status">
        {came === "copied" && `Copied ${what}.`}
      </span>
      {came === "refused" && (
        <Dialog title={`Copy ${what}`} busy={false} onClose={() => setCame(undefined)}>
          <p>The browser refused. Copy this by hand.</p>
          <Block>{text}</Block>
          <Button onClick={() => setCame(undefined)}>Close</Button>
        </Dialog>
      )}
    </>
  );
}

export const Button = (props: ComponentProps<"button">) => <button type="button" {...props} />;

export const Submit = (props: ComponentProps<"button">) => <button type="submit" class="main" {...props} />;

type Labelled = { label: string; name: string };

/** A text field with its label; with a `hint`, also with a sentence below it. */
export const Field = ({ label, hint, ...input }: Labelled & { hint?: string } & ComponentProps<"input">) => (
  <div class="field">
    <label for={input.name}>{label}</label>
    <input id={input.name} autocomplete="off" spellcheck={false} aria-describedby={hint && "hint"} {...input} />
    {hint && <small id="hint">{hint}</small>}
  </div>
);

type Given = { of: Record<string, string>; value: string; onChange?: (value: string) => void };

/** A field with a few values to choose from, each with its words. */
export const Choice = ({ label, name, of, value: chosen, onChange }: Labelled & Given) => (
  <div class="field">
    <label for={name}>{label}</label>
    <select id={name} name={name} onChange={(event) => onChange?.(event.currentTarget.value)}>
      {Object.entries(of).map(([value, words]) => (
        <option key={value} value={value} selected={value === chosen}>
          {words}
        </option>
      ))}
    </select>
  </div>
);

/** A box to tick, with its label. */
export const Tick = (props: { label: string; checked: boolean; onChange: (checked: boolean) => void }) => (
  <label>
    <input type="checkbox" checked={props.checked} onChange={(event) => props.onChange(event.currentTarget.checked)} />
    {props.label}
  </label>
);

/** Returns what was entered into a form, which the browser does not send then. */
export function entered(event: Event): Record<string, string> {
  event.preventDefault();
  const given = new FormData(event.currentTarget as HTMLFormElement);
  return Object.fromEntries([...given].map(([name, value]) => [name, String(value).trim()]));
}

type Columns<T> = Record<string, (row: T) => ComponentChildren>;

/** A table with a column by each head. Its cells know their heads: a narrow screen shows each row as a list. */
export function Table<T>(props: { rows: T[]; name: (row: T) => string; columns: Columns<T> }) {
  const [[title = "", first] = [], ...others] = Object.entries(props.columns);
  return (
    <div class="wide">
      <table class="stack">
        <thead>
          <tr>
            {[title, ...others.map(([head]) => head)].map((head) => (head ? <th scope="col">{head}</th> : <td />))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={props.name(row)}>
              <th scope="row">{first?.(row)}</th>
              {others.map(([head, cell]) => (
                <td key={head} class={head ? undefined : "act"} data-label={head || undefined}>
                  <div>{cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Names and what they are; those without a value are left out. */
export const Facts = ({ facts }: { facts: Record<string, ComponentChildren> }) => (
  <dl>
    {Object.entries(facts).map(([term, fact]) =>
      fact === null || fact === false || fact === "" ? null : (
        <div key={term}>
          <dt>{term}</dt>
          <dd>{fact}</dd>
        </div>
      ),
    )}
  </dl>
);

/** What needs an action, or the sentence that says which roles allow it; until the caller is known, that it loads. */
export function For(props: { action: Action; name?: string; what: string; children?: ComponentChildren }) {
  const me = useMe();
  if (!me) return <Loading what="your role" />;
  if (may(me, props.action, props.name)) return <>{props.children}</>;
  return (
    <p class="faint">{`${props.what} needs the role ${rolesFor(me, props.action)} for ${props.name ?? "a state"}.`}</p>
  );
}

/** A modal dialog. Escape calls `onClose`, but not while it is busy: what came of that is still to be told. */
export function Dialog(props: { title: string; busy: boolean; onClose: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const stay = (event: Event) => props.busy && event.preventDefault();
  useLayoutEffect(() => {
    const before = document.activeElement;
    const element = dialog.current;
    element?.showModal();
    return () => {
      element?.close(); // while it is open, nothing else takes the focus
      const opener = before?.isConnected ? before : document.getElementById("main"); // a change may remove it
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby="dialog-title" onCancel={stay} onClose={props.onClose}>
      <h2 id="dialog-title">
        <Name>{props.title}</Name>
      </h2>
      {props.children}
    </dialog>
  );
}
