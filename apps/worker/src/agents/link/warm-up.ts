import { type AgentSetup, GUEST_LINK } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { TokenBucket } from '@svc/service-kit/concurrency';
import { linkBudgets } from './link-budgets.ts';
import { LinkConnection } from './link-connection.ts';

/** The first run still leaves some code cold. */
const RUNS = 2;

const READ_RATE = { perSecond: 1024 * 1024, burst: 1024 * 1024 };

const SETUP: AgentSetup = {
  mode: 'session',
  agent: 'deictic',
  model: 'rehearsal',
  dialect: 'anthropic',
  gateway: `http://127.0.0.1:${GUEST_LINK.llmGatewayPort}/anthropic`,
  wireVersion: 2,
  env: { REHEARSAL: '1' },
  restoreFiles: false,
};

/**
 * Has the agent runtime of an idle VM rehearse its configuration, without keeping any of it. After a restore, the
 * first use of memory and code is slow; this moves that cost from a session's start to the pool.
 * @throws MicrovmError, LineProtocolError, the socket's error or the signal's reason
 */
export async function warmUpRuntime(
  vm: Pick<Microvm, 'dialAgent'>,
  signal: AbortSignal,
): Promise<void> {
  for (let run = 1; run <= RUNS; run += 1) {
    const connection = new LinkConnection(await vm.dialAgent(signal), {
      readRate: new TokenBucket(READ_RATE),
      // The VM belongs to no account yet.
      held: linkBudgets().of(''),
    });
    try {
      connection.send({ type: 'rehearse', token: 'rehearsal', setup: SETUP });
      await connection.expect('rehearsed', signal);
    } finally {
      connection.close();
    }
  }
}
