// Opens session files with Pi and prints the ids of the entries it sees in each.
// PI_HOME=... node opens_in_pi.mjs FILE...
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const entry = "node_modules/@earendil-works/pi-coding-agent/dist/index.js";
const { SessionManager } = await import(pathToFileURL(join(process.env.PI_HOME, entry)).href);
const ids = (path) => SessionManager.open(path).getEntries().map((entry) => entry.id);
console.log(JSON.stringify(process.argv.slice(2).map(ids)));
