// How two values of an attribute differ, line by line. JSON in a text, such as a policy, is compared as JSON.

export type Line = { sign: "" | "+" | "−" | "…"; text: string };

const LONGEST = 200_000; // characters of a value that is taken apart
const MOST_PAIRS = 1_000_000; // pairs of lines that are compared
const AROUND = 3; // equal lines that are shown beside a difference
const MOST_LINES = 200; // that are shown of one value
const WIDEST = 400; // characters that are shown of a line
const BEFORE = 40; // of them before the first difference

/** Returns what is to be shown of a value before and after, as JSON; null where it was absent. */
export function compared(before: string | null, after: string | null): Line[] {
  const [old, now] = [linesOf(before), linesOf(after)];
  const lines = old && now && differing(old.lines, now.lines, old.isJson && now.isJson ? sameMember : sameText);
  // Equal lines of unequal values: white space in JSON, or a text that became what it contains.
  const isTold = lines?.some(({ sign }) => sign !== "");
  return cut(isTold && lines ? folded(lines) : [...signed("−", whole(before)), ...signed("+", whole(after))]);
}

/** Returns a value, as JSON, in lines to read. */
export function read(value: string): string[] {
  const lines = linesOf(value)?.lines ?? [value];
  return cut(lines.map((text) => ({ sign: "", text }))).map(({ text }) => text);
}

const whole = (value: string | null) => (value === null ? [] : [value]);
const signed = (sign: Line["sign"], texts: string[]): Line[] => texts.map((text) => ({ sign, text }));

type Content = { lines: string[]; isJson: boolean };

/** Returns the lines of a value; null if it is too long for that. */
function linesOf(value: string | null): Content | null {
  if (value === null) return { lines: [], isJson: true };
  if (value.length > LONGEST) return null;
  const content: unknown = parsed(value);
  const json = typeof content === "string" ? content : value;
  const inner = typeof content === "string" ? parsed(content) : content;
  if (typeof inner === "object" && inner) return { lines: indented(json), isJson: true };
  const isText = typeof content === "string" && content.includes("\n");
  return { lines: isText ? content.split("\n") : [value], isJson: false };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** Returns valid JSON in lines. Its numbers, and the order of its members, stay as they are written. */
function indented(json: string): string[] {
  const lines: string[] = [];
  let line = "";
  let depth = 0;
  let previous = "";
  const end = () => {
    lines.push(line);
    line = "  ".repeat(depth);
  };
  for (const [token] of json.matchAll(TOKEN)) {
    const opens = token === "{" || token === "[";
    const closes = token === "}" || token === "]";
    if (closes) depth -= 1;
    if (closes && (previous === "{" || previous === "[")) line = lines.pop() ?? "";
    else if (closes) end();
    line += token === ":" ? ": " : token;
    if (opens) depth += 1;
    if (opens || token === ",") end();
    previous = token;
  }
  return [...lines, line];
}

type Same = (a: string | undefined, b: string | undefined) => boolean;

const sameText: Same = (a, b) => a === b;
/** In JSON a comma behind the last member of a list comes and goes with the member after it. */
const sameMember: Same = (a, b) => a?.replace(/,$/, "") === b?.replace(/,$/, "");

/** Returns all lines of both sides, by their longest common subsequence. */
function differing(old: string[], now: string[], same: Same): Line[] {
  let start = 0;
  while (start < Math.min(old.length, now.length) && same(old[start], now[start])) start += 1;
  let end = 0;
  while (end < Math.min(old.length, now.length) - start && same(old.at(-1 - end), now.at(-1 - end))) end += 1;
  const [a, b] = [old.slice(start, old.length - end), now.slice(start, now.length - end)];
  const between = a.length * b.length > MOST_PAIRS ? [...signed("−", a), ...signed("+", b)] : longestCommon(a, b, same);
  return [...signed("", now.slice(0, start)), ...between, ...signed("", now.slice(now.length - end))];
}

function longestCommon(a: string[], b: string[], same: Same): Line[] {
  // By the lines left on both sides: how many of them are common at most.
  const width = b.length + 1;
  const common = new Uint16Array((a.length + 1) * width);
  const left = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      common[i * width + j] = same(a[i], b[j]) ? left(i + 1, j + 1) + 1 : Math.max(left(i + 1, j), left(i, j + 1));
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && same(a[i], b[j])) {
      lines.push({ sign: "", text: b[j] ?? "" });
      [i, j] = [i + 1, j + 1];
    } else if (i < a.length && (j === b.length || left(i + 1, j) >= left(i, j + 1))) {
      lines.push({ sign: "−", text: a[i] ?? "" });
      i += 1;
    } else {
      lines.push({ sign: "+", text: b[j] ?? "" });
      j += 1;
    }
  }
  return lines;
}

/** Returns the lines that differ and some around them; for others how many they are. */
function folded(lines: Line[]): Line[] {
  const isNear = lines.map((_, at) =>
    lines.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(({ sign }) => sign !== ""),
  );
  const shown: Line[] = [];
  let skipped = 0;
  const tell = () => {
    if (skipped) shown.push({ sign: "…", text: `${skipped} equal line${skipped === 1 ? "" : "s"}` });
    skipped = 0;
  };
  lines.forEach((line, at) => {
    if (!isNear[at]) skipped += 1;
    else {
      tell();
      shown.push(line);
    }
  });
  tell();
  return shown;
}

/** Returns no more than can be read: the first lines, and of each a part. */
function cut(lines: Line[]): Line[] {
  const rest = lines.length - MOST_LINES;
  const more: Line[] = rest > 0 ? [{ sign: "…", text: `${rest.toLocaleString("en")} more lines` }] : [];
  const shown = lines.slice(0, MOST_LINES).map(({ sign, text }, at) => {
    const other = sign === "−" ? lines[at + 1] : lines[at - 1];
    const replaced = sign + other?.sign === "−+" || sign + other?.sign === "+−" ? other?.text : undefined;
    return { sign, text: visible(shortened(text, replaced)) || (sign && "↵") };
  });
  return [...shown, ...more];
}

/** Returns a part of a long text, around where it differs from the text that it replaces or that replaces it. */
function shortened(text: string, other: string | undefined): string {
  if (text.length <= WIDEST) return text;
  let same = 0;
  while (other !== undefined && same < text.length && text[same] === other[same]) same += 1;
  const start = other === undefined ? 0 : Math.max(0, same - BEFORE);
  const end = start + WIDEST;
  const shown = (start ? "…" : "") + text.slice(start, end) + (end < text.length ? "…" : "");
  return `${shown} (${text.length.toLocaleString("en")} characters)`;
}

/** Returns a text with its control characters in writing, so that none turns the page's lines around. */
const visible = (text: string) =>
  text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    character === "\t" ? character : `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`,
  );
