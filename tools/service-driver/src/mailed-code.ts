import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * The newest one-time code mailed to an address, from the service's outbox. The service writes the message
 * before it answers the request for the code. @throws Error when the outbox has no message for the address
 */
export async function mailedCode(dataDir: string, email: string): Promise<string> {
  const outbox = join(dataDir, 'outbox');
  const names = (await readdir(outbox)).filter((name) => name.endsWith('.eml')).sort();
  for (const name of names.reverse()) {
    const message = await readFile(join(outbox, name), 'utf8');
    const code = /\b(\d{6})\b/.exec(/^Subject: (.*)$/m.exec(message)?.[1] ?? '')?.[1];
    if (code !== undefined && message.includes(email)) return code;
  }
  throw new Error(`no code for ${email} in ${outbox}`);
}
