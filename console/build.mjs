// Builds the console: node console/build.mjs [DIRECTORY] writes what the function serves, --types the types of
// docs/openapi.yaml, and --test runs the unit tests.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = join(HERE, "..");
const LARGEST = 40 * 1024; // bytes of all files together, compressed
const TYPES = { html: "text/html", js: "text/javascript", css: "text/css" };
const SOURCES = { app: `${HERE}/src/main.tsx`, style: `${HERE}/style.css` };
const SHARED = { bundle: true, charset: "utf8", target: "es2022", jsx: "automatic", jsxImportSource: "preact" };
const SMALL = { minify: true, legalComments: "none", write: false };

async function site(to) {
  const { outputFiles } = await build({ ...SHARED, ...SMALL, entryPoints: SOURCES, outdir: to, format: "iife" });
  const files = {};
  const hashed = {};
  for (const { path, contents } of outputFiles) {
    const hash = createHash("sha256").update(contents).digest("hex").slice(0, 12);
    hashed[basename(path)] = basename(path).replace(".", `-${hash}.`);
    files[hashed[basename(path)]] = contents;
  }
  const page = readFileSync(join(HERE, "index.html"), "utf8")
    .replace(/\n\s+/g, "\n")
    .replace("style.css", hashed["style.css"]);
  files["index.html"] = Buffer.from(page.replace("app.js", hashed["app.js"]));
  files["sign-in.html"] = files["index.html"]; // with other headers
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  const listed = {};
  let total = 0;
  for (const name of Object.keys(files).sort()) {
    const compressed = gzipSync(files[name], { level: 9 });
    compressed.fill(0, 4, 8); // the time
    compressed[9] = 255; // the system
    total += compressed.length;
    writeFileSync(join(to, name), files[name]);
    writeFileSync(join(to, `${name}.gz`), compressed);
    listed[name] = {
      type: `${TYPES[name.split(".").at(-1)]}; charset=utf-8`,
      cache: name.endsWith(".html") ? "no-store" : "public, max-age=31536000, immutable",
      opener: name === "sign-in.html",
    };
  }
  writeFileSync(join(to, "files.json"), `${JSON.stringify(listed, null, 2)}\n`);
  if (total > LARGEST) throw new Error(`The console has ${total} bytes compressed, above ${LARGEST}.`);
}

function types() {
  const command = [`${ROOT}/docs/openapi.yaml`, "--output", `${ROOT}/.build/console-types/schema.d.ts`];
  execFileSync(`${ROOT}/node_modules/.bin/openapi-typescript`, command, { stdio: ["ignore", "ignore", "inherit"] });
}

async function test() {
  const outfile = `${ROOT}/.build/console-tests/all.test.mjs`;
  await build({ ...SHARED, entryPoints: [`${HERE}/tests/all.test.ts`], outfile, format: "esm", platform: "node" });
  execFileSync(process.execPath, ["--test", outfile], { stdio: "inherit" });
}

const [asked] = process.argv.slice(2);
if (asked === "--types") types();
else if (asked === "--test") await test();
else await site(resolve(asked ?? `${ROOT}/.build/console`));
