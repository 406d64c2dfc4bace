// Builds the console: node console/build.mjs [DIRECTORY] writes what the function serves, --types the API's types,
// --test runs the unit tests. docs/openapi.yaml is where the types come from.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const BUILD = join(HERE, "..", ".build");
const LARGEST = 40 * 1024; // bytes of all files together, compressed
const TYPES = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
};
const SHARED = {
  bundle: true,
  charset: "utf8",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
};

async function site(to) {
  const { outputFiles } = await build({
    ...SHARED,
    entryPoints: {
      app: `${HERE}/src/main.tsx`,
      "sign-in": `${HERE}/src/hand-over.tsx`,
      style: `${HERE}/style.css`,
    },
    outdir: to,
    format: "iife",
    minify: true,
    legalComments: "none",
    write: false,
  });
  const files = new Map();
  for (const { path, contents } of outputFiles) {
    const hash = createHash("sha256").update(contents).digest("hex").slice(0, 12);
    files.set(basename(path).replace(".", `-${hash}.`), contents);
  }
  const hashed = [...files.keys()];
  for (const page of ["index.html", "sign-in.html"]) {
    const text = readFileSync(join(HERE, page), "utf8").replace(
      /\.\/([a-z-]+)\.(js|css)"/g,
      (_, name, ending) => {
        const found = hashed.find((file) => new RegExp(`^${name}-[0-9a-f]{12}[.]${ending}$`).test(file));
        return `./${found}"`;
      },
    );
    files.set(page, Buffer.from(text));
  }
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  const listed = {};
  let total = 0;
  for (const [name, contents] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const compressed = gzipSync(contents, { level: 9 });
    compressed.fill(0, 4, 8); // the time
    compressed[9] = 255; // the system
    total += compressed.length;
    writeFileSync(join(to, name), contents);
    writeFileSync(join(to, `${name}.gz`), compressed);
    listed[name] = {
      type: TYPES[name.split(".").at(-1)],
      cache: hashed.includes(name) ? "public, max-age=31536000, immutable" : "no-store",
      opener: name === "sign-in.html",
    };
  }
  writeFileSync(join(to, "files.json"), `${JSON.stringify(listed, null, 2)}\n`);
  if (total > LARGEST) throw new Error(`The console has ${total} bytes compressed, above ${LARGEST}.`);
}

function types() {
  const to = join(BUILD, "console-types", "schema.d.ts");
  const command = join(HERE, "..", "node_modules", ".bin", "openapi-typescript");
  execFileSync(command, [join(HERE, "..", "docs", "openapi.yaml"), "--output", to], {
    stdio: ["ignore", "ignore", "inherit"],
  });
}

async function test() {
  const to = join(BUILD, "console-tests", "all.test.mjs");
  await build({
    ...SHARED,
    entryPoints: [`${HERE}/tests/all.test.ts`],
    outfile: to,
    format: "esm",
    platform: "node",
  });
  execFileSync(process.execPath, ["--test", to], { stdio: "inherit" });
}

const [asked] = process.argv.slice(2);
try {
  if (asked === "--types") types();
  else if (asked === "--test") await test();
  else await site(resolve(asked ?? join(BUILD, "console")));
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
}
