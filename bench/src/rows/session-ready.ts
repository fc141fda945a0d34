import { inTurns } from '../measure/in-turns.ts';
import { type Row, ratioResult } from '../measure/row.ts';
import { timeCreate } from '../service/time-create.ts';
import { BenchSessions } from '../sessions/bench-sessions.ts';

const AT_MOST = 3;

/** Time from the create of a session to `ready`, compared with a plain sandbox from the same pool. */
export const sessionReady: Row = {
  name: 'session-ready',
  pool: 2,
  async run({ service, models, runs, progress }) {
    const sessions = await BenchSessions.open(service, models.server.url);
    const samples = await inTurns({
      runs,
      ours: async () => {
        await service.settled();
        return sessions.timeToReady(() => sessions.create());
      },
      comparison: async () => {
        await service.settled();
        return timeCreate(service);
      },
      onTurn: (done) => progress(`${done}/${runs}`),
    });
    return [
      ratioResult({
        name: this.name,
        what: 'POST /v1/sessions to `ready`, from the pool',
        against: 'create of a plain sandbox from the pool',
        unit: 'ms',
        ...samples,
        atMost: AT_MOST,
      }),
    ];
  },
};
