// Opens session files with Pi and prints how many entries it sees in each.
// PI_HOME=... node opens_in_pi.mjs FILE...
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const entry = "node_modules/@earendil-works/pi-coding-agent/dist/index.js";
const { SessionManager } = await import(pathToFileURL(join(process.env.PI_HOME, entry)).href);
const counts = process.argv.slice(2).map((path) => SessionManager.open(path).getEntries().length);
console.log(JSON.stringify(counts));
