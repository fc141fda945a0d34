import { open, readFile } from 'node:fs/promises';

const CHUNK = 16 * 1024 * 1024;

/** Whether the memory of a process contains a text. For QEMU this includes the guest's memory. */
export async function memoryHolds(pid: number, text: string): Promise<boolean> {
  const needle = Buffer.from(text);
  const maps = await readFile(`/proc/${pid}/maps`, 'utf8');
  await using memory = await open(`/proc/${pid}/mem`, 'r');
  const chunk = Buffer.alloc(CHUNK);
  for (const line of maps.split('\n')) {
    const [, from, to, name = ''] = /^(\w+)-(\w+) r\S* \S+ \S+ \S+\s*(.*)$/.exec(line) ?? [];
    // Skips unreadable kernel pages such as [vvar].
    if (from === undefined || to === undefined || name.startsWith('[v')) continue;
    const end = Number.parseInt(to, 16);
    for (let at = Number.parseInt(from, 16); at < end; at += CHUNK - needle.length) {
      const { bytesRead } = await memory.read(chunk, 0, Math.min(CHUNK, end - at), at);
      if (chunk.subarray(0, bytesRead).includes(needle)) return true;
      if (bytesRead === 0) break;
    }
  }
  return false;
}
