// Builds the page into src/fedrecplus/web/page/site: `npm ci && npm run build`, or `make page`.
// SOURCES has a digest of everything that goes in, so that a test can tell a stale build without npm.
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const site = process.argv[2] ?? join(here, "..", "src", "fedrecplus", "web", "page", "site");

const walk = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? walk(join(folder, entry.name)) : [join(folder, entry.name)],
  );

function digestOfSources() {
  const hash = createHash("sha256");
  const names = [...walk(join(here, "src")), ...walk(join(here, "static"))].map((path) =>
    relative(here, path).split("\\").join("/"),
  );
  for (const name of [...names, "build.mjs", "package-lock.json", "tsconfig.json"].sort()) {
    hash.update(`${name}\0`).update(readFileSync(join(here, name))).update("\0");
  }
  return hash.digest("hex");
}

rmSync(site, { recursive: true, force: true });
mkdirSync(site, { recursive: true });
cpSync(join(here, "static"), site, { recursive: true });
const common = { bundle: true, minify: true, format: "esm", target: "es2022", charset: "utf8", legalComments: "none" };
// the engine is a file of its own: tests run exactly what the page runs
await build({ ...common, entryPoints: [join(here, "src/engine.ts")], outfile: join(site, "engine.js") });
const apart = {
  name: "engine-apart",
  setup: (own) => own.onResolve({ filter: /\/(engine|device)\.js$/ }, ({ path }) => ({ path: `./${path.split("/").pop()}`, external: true })),
};
await build({ ...common, entryPoints: [join(here, "src/app.ts")], outfile: join(site, "app.js"), plugins: [apart] });
// what a page of a server loads besides, with the licences of the libraries in it
await build({ ...common, entryPoints: [join(here, "src/device.ts")], outfile: join(site, "device.js") });
const bundled = ["@msgpack/msgpack", "@noble/ciphers", "@noble/curves", "@noble/hashes", "smol-toml"];
const licences = bundled.map((name) => `${name}\n\n${readFileSync(join(here, "node_modules", name, "LICENSE"), "utf8").trim()}\n`);
writeFileSync(join(site, "licenses.txt"), licences.join("\n----\n\n"));
await build({ ...common, format: "iife", entryPoints: [join(here, "src/offline.ts")], outfile: join(site, "offline.js") });
await build({ ...common, entryPoints: [join(here, "src/app.css")], outfile: join(site, "app.css") });
writeFileSync(join(site, "sources.json"), JSON.stringify({ sha256: digestOfSources() }) + "\n");
