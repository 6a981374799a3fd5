// Times Pi's own compaction planner on a session file: node plan.mjs PI_HOME FILE
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [home, file] = process.argv.slice(2);
const core = join(home, "node_modules/@earendil-works/pi-coding-agent/dist/core");
const imported = (name) => import(pathToFileURL(join(core, name)));
const { prepareCompaction } = await imported("compaction/compaction.js");
const { SessionManager } = await imported("session-manager.js");
const session = SessionManager.open(file);
const settings = { enabled: true, reserveTokens: 16384, keepRecentTokens: 20000 };

const begun = performance.now();
const plan = prepareCompaction(session.getBranch(), settings);
const ms = performance.now() - begun;
const count = plan.messagesToSummarize.length + plan.turnPrefixMessages.length;
console.log(JSON.stringify({ ms, count }));
