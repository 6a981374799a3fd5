// Lists all sessions below PI_CODING_AGENT_DIR with Pi's own SDK, twice, for its RPC has no list.
// PI_HOME=... PI_CODING_AGENT_DIR=... node list_sessions.mjs
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const entry = "node_modules/@earendil-works/pi-coding-agent/dist/index.js";
const { SessionManager } = await import(pathToFileURL(join(process.env.PI_HOME, entry)).href);

const seconds = [];
let sessions = 0;
for (let turn = 0; turn < 2; turn++) {
  const begun = process.hrtime.bigint();
  sessions = (await SessionManager.listAll()).length;
  seconds.push(Number(process.hrtime.bigint() - begun) / 1e9);
}
const peakMemoryMb = process.resourceUsage().maxRSS / 1024;
console.log(JSON.stringify({ sessions, seconds, peakMemoryMb }));
