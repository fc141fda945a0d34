import { inTurns } from '../measure/in-turns.ts';
import { type Row, ratioResult } from '../measure/row.ts';
import { PROMPT } from '../sessions/bench-models.ts';
import { BenchSessions } from '../sessions/bench-sessions.ts';

const AT_MOST = 1.5;

/** Time from the resume of an ended session to `ready`, compared with a new session. */
export const sessionResume: Row = {
  name: 'session-resume',
  pool: 2,
  async run({ service, models, runs, progress }) {
    const sessions = await BenchSessions.open(service, models.server.url);
    const samples = await inTurns({
      runs,
      ours: async () => {
        const session = await sessions.create();
        const client = await sessions.attach(session);
        client.task(PROMPT);
        await client.until('task_completed');
        await client.close();
        await sessions.delete(session);
        await service.settled();
        return sessions.timeToReady(() => sessions.resume(session));
      },
      comparison: async () => {
        await service.settled();
        return sessions.timeToReady(() => sessions.create());
      },
      onTurn: (done) => progress(`${done}/${runs}`),
    });
    return [
      ratioResult({
        name: this.name,
        what: 'resume of a session to `ready`',
        against: 'create of a session to `ready`',
        unit: 'ms',
        ...samples,
        atMost: AT_MOST,
      }),
    ];
  },
};
