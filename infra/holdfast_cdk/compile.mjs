// CPython in WebAssembly, which compiles folders to bytecode: node compile.mjs FOLDER-OF-NPM'S-PYODIDE
// It prints its cache tag and release level first.
// Then each line that it reads is JSON with a folder and the code that compiles it; each line that it prints is
// JSON with `error`, null if everything went well.
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const MOUNTED = "/bundle";

const { loadPyodide } = await import(pathToFileURL(join(process.argv[2], "pyodide.mjs")).href);
const python = await loadPyodide({ stdout: () => {}, stderr: () => {} });
console.log(python.runPython("import sys; f'{sys.implementation.cache_tag} {sys.version_info.releaselevel}'"));
python.FS.mkdir(MOUNTED);
for await (const line of createInterface({ input: process.stdin })) {
  const { folder, code } = JSON.parse(line);
  let error = null;
  python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, MOUNTED);
  try {
    python.runPython(`import sys\nsys.argv = ["-c", "${MOUNTED}"]\n${code}`);
  } catch (fault) {
    error = String(fault.message).trim().split("\n").at(-1);
  } finally {
    python.FS.unmount(MOUNTED);
  }
  console.log(JSON.stringify({ error }));
}
