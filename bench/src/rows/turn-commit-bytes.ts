import { BytesWritten } from '../measure/bytes-written.ts';
import { type Row, ratioResult } from '../measure/row.ts';
import { PROMPT } from '../sessions/bench-models.ts';
import { BenchSessions } from '../sessions/bench-sessions.ts';

const AT_LEAST = 20;
const RUNS = 3;
const HOME = '/home/agent/bench';
/** 100 MiB that do not compress, in files of different sizes. */
const FILL = `mkdir -p ${HOME} && cd ${HOME} &&
  for i in $(seq 9); do head -c 10485760 /dev/urandom > large$i; done &&
  for i in $(seq 320); do head -c 32768 /dev/urandom > small$i; done && chown -R agent ${HOME}`;
const ARCHIVE = 'tar --create --file=- --sparse --exclude=./.cache --exclude=./.npm . | wc -c';

/** Bytes that the commit of a turn writes when one small file of a large home directory has changed. */
export const turnCommitBytes: Row = {
  name: 'turn-commit-bytes',
  pool: 2,
  async run({ service, models, progress }) {
    const sessions = await BenchSessions.open(service, models.server.url);
    const session = await sessions.create();
    const client = await sessions.attach(session);
    await using written = await BytesWritten.open(service.dataDir);
    try {
      const { sessions: api, sandboxes } = service.client;
      const { vm_id: vmId = '' } = await api.get(session.chat_session_id);
      const run = async (command: string): Promise<string> => {
        const { exit_code, output } = await sandboxes.exec(vmId, command);
        if (exit_code !== 0) throw new Error(`${command} failed: ${output}`);
        return output;
      };
      /** Bytes that a turn after this command writes. */
      const turnAfter = async (command: string): Promise<number> => {
        await run(command);
        const before = await written.now();
        client.task(PROMPT);
        await client.until('task_completed');
        const after = await written.now();
        return after.database - before.database + (after.objects - before.objects);
      };
      const first = await turnAfter(FILL);
      progress('filled');
      const ours: number[] = [];
      const comparison: number[] = [];
      for (let turn = 1; turn <= RUNS; turn += 1) {
        ours.push(await turnAfter(`date +%N > ${HOME}/small${turn * 50}`));
        comparison.push(Number(await run(`cd /home/agent && ${ARCHIVE}`)));
        progress(`${turn}/${RUNS}`);
      }
      return [
        ratioResult({
          name: this.name,
          what: 'a turn that changed one small file of 100 MiB, as objects and write-ahead log',
          against: 'the whole archive',
          unit: 'bytes',
          ours,
          comparison,
          inverse: true,
          atLeast: AT_LEAST,
          notes: [`the first turn, which stores everything, wrote ${first} bytes`],
        }),
      ];
    } finally {
      await client.close();
      await sessions.delete(session);
    }
  },
};
