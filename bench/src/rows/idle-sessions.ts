import { setTimeout as sleep } from 'node:timers/promises';
import { LIMITS } from '@svc/contract';
import { RuntimeHost, residentMib } from '@svc/service-driver';
import type { Row } from '../measure/row.ts';
import { summarise } from '../measure/statistics.ts';
import { BenchSessions } from '../sessions/bench-sessions.ts';
import { attachIdle } from '../sessions/idle-client.ts';

const CLIENTS = 100;
/** The clients share few sessions, because a VM for each would measure the memory of the machine instead. */
const SESSIONS = 4;
const PINGS = 2;

/** Many idle clients on a runtime host in a process of its own. */
export const idleSessions: Row = {
  name: 'idle-sessions',
  pool: 2,
  async run({ service, models, progress }) {
    const sessions = await BenchSessions.open(service, models.server.url);
    await using host = await RuntimeHost.start(service.address);
    const created = [];
    const clients = [];
    try {
      for (let index = 0; index < SESSIONS; index += 1) created.push(await sessions.create());
      const before = await residentMib(host.pid);
      for (let index = 0; index < CLIENTS; index += 1) {
        const session = created[index % SESSIONS];
        if (session !== undefined) clients.push(await attachIdle(session, host, service.ca));
        progress(`${index + 1}/${CLIENTS}`);
      }
      await sleep((PINGS + 0.5) * LIMITS.keepaliveIntervalMs);
      const after = await residentMib(host.pid);
      const pings = clients.map((client) => client.pings);
      const missed = clients.filter((client) => client.closed || client.pings < PINGS).length;
      const each = ((after - before) * 1024) / CLIENTS;
      return [
        {
          name: this.name,
          what: `${CLIENTS} idle clients on one runtime host, ${SESSIONS} sessions`,
          against: '',
          unit: 'pings',
          ours: summarise(pings),
          figure: { text: `${each.toFixed(0)} KiB each`, value: each },
          bound: 'no missed pings',
          ok: missed === 0,
          notes: [],
        },
      ];
    } finally {
      for (const client of clients) client.end();
      for (const session of created) await sessions.delete(session);
    }
  },
};
