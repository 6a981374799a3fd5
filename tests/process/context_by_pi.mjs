// Prints the context an installed Pi makes of a session file, as JSON. Pi may repair a file it opens,
// so it is given a copy. Needs PI_HOME, the folder whose node_modules hold Pi.
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const pi = join(process.env.PI_HOME, "node_modules/@earendil-works/pi-coding-agent/dist/index.js");
const { SessionManager } = await import(pathToFileURL(pi).href);
const folder = mkdtempSync(join(tmpdir(), "context-by-pi-"));
try {
  const copy = join(folder, "session.jsonl");
  copyFileSync(process.argv[2], copy);
  const { messages, model, thinkingLevel } = SessionManager.open(copy).buildSessionContext();
  process.stdout.write(JSON.stringify({ messages, model, thinkingLevel }));
} finally {
  rmSync(folder, { recursive: true });
}
